extension Snapshot {
  /// A mutation of an unknown store, or of an entry without a kept header, changes nothing.
  ///
  /// - Complexity: O(1), besides the mutation's own content.
  package mutating func apply(_ mutation: Mutation) {
    switch mutation {
    case .setClock(let clock): self.clock = clock
    case .setIncarnation(let incarnation): self.incarnation = incarnation
    case .setKeepsHistory(let keepsHistory): self.keepsHistory = keepsHistory
    case .putRecord(let digest, let record): records[digest] = record
    case .removeRecord(let digest): records[digest] = nil
    case .setAddresses(let device, let list): addresses[device] = list.isEmpty ? nil : list
    case .putStore(let store, let policy):
      if stores[store] == nil {
        stores[store] = StoredStore(policy: policy)
      } else {
        stores[store]?.policy = policy
      }
    case .setAdopted(let store, let clock): stores[store]?.adopted = clock
    case .setOpened(let store): stores[store]?.isOpened = true
    case .putHeader(let store, let reference, let header, let signature):
      stores[store]?.putHeader(reference, header: header, signature: signature)
    case .removeChangeSet(let store, let reference):
      stores[store]?.changeSets[reference] = nil
    case .putEntry(let store, let reference, let index, let box):
      stores[store]?.changeSets[reference]?.entries[index] = box
    case .removeEntry(let store, let reference, let index):
      stores[store]?.changeSets[reference]?.entries[index] = nil
    case .setVector(let store, let device, let incarnation, let sequence):
      stores[store]?.vector[device, default: [:]][incarnation] = sequence
    case .removeVector(let store, let device, let incarnation):
      stores[store]?.vector.remove(device, incarnation)
    case .setLost(let store, let device, let incarnation, let sequence):
      stores[store]?.lost[device, default: [:]][incarnation] = sequence
    case .removeLost(let store, let device, let incarnation):
      stores[store]?.lost.remove(device, incarnation)
    case .setLoss(let store, let loss): stores[store]?.loss = loss
    case .setHorizon(let store, let horizon): stores[store]?.horizon = horizon
    case .dropDamaged: break
    case .putDraft(let store, let ordinal, let draft): stores[store]?.drafts[ordinal] = draft
    case .removeDraft(let store, let ordinal): stores[store]?.drafts[ordinal] = nil
    case .putRefusal(let store, let number, let refusal):
      stores[store]?.refusals[number] = refusal
    case .removeRefusal(let store, let number): stores[store]?.refusals[number] = nil
    case .putPastValue(let store, let number, let value):
      stores[store]?.pastValues[number] = value
    case .removePastValue(let store, let number): stores[store]?.pastValues[number] = nil
    case .putObject(let carrier, let name, let object):
      carriers[carrier, default: [:]][name] = object
    case .removeObject(let carrier, let name):
      carriers[carrier]?[name] = nil
      if carriers[carrier]?.isEmpty == true { carriers[carrier] = nil }
    }
  }
}

extension StoredStore {
  /// Entries of a kept change set stay.
  fileprivate mutating func putHeader(
    _ reference: ChangeSetReference, header: [UInt8], signature: [UInt8]
  ) {
    if changeSets[reference] == nil {
      changeSets[reference] = StoredChangeSet(header: header, signature: signature)
    } else {
      changeSets[reference]?.header = header
      changeSets[reference]?.signature = signature
    }
  }
}

extension [DeviceID: [Incarnation: UInt64]] {
  /// Removes a device with its last incarnation.
  fileprivate mutating func remove(_ device: DeviceID, _ incarnation: Incarnation) {
    self[device]?[incarnation] = nil
    if self[device]?.isEmpty == true { self[device] = nil }
  }
}

extension Snapshot {
  /// The mutations that give another device the same data. Drafts name no device: the device that
  /// publishes them is their author. Past values stay: the other device never showed them.
  package var forAnotherDevice: [Mutation] {
    var mutations: [Mutation] = [.setClock(clock)]
    if !keepsHistory { mutations.append(.setKeepsHistory(false)) }
    for (device, addresses) in addresses { mutations.append(.setAddresses(device, addresses)) }
    for (identifier, store) in stores {
      mutations.append(.putStore(identifier, store.policy))
      if store.adopted > .zero { mutations.append(.setAdopted(identifier, store.adopted)) }
      for (reference, changeSet) in store.changeSets {
        mutations.append(
          .putHeader(
            identifier, reference, header: changeSet.header, signature: changeSet.signature))
        for (index, box) in changeSet.entries {
          mutations.append(.putEntry(identifier, reference, index: index, box: box))
        }
      }
      for (device, incarnations) in store.vector {
        for (incarnation, sequence) in incarnations {
          mutations.append(.setVector(identifier, device, incarnation, sequence))
        }
      }
      for (device, incarnations) in store.lost {
        for (incarnation, sequence) in incarnations {
          mutations.append(.setLost(identifier, device, incarnation, sequence))
        }
      }
      if let loss = store.loss { mutations.append(.setLoss(identifier, loss)) }
      if store.horizon != Horizon() { mutations.append(.setHorizon(identifier, store.horizon)) }
      if store.isOpened { mutations.append(.setOpened(identifier)) }
      for (ordinal, draft) in store.drafts {
        mutations.append(.putDraft(identifier, ordinal, draft))
      }
      for (number, refusal) in store.refusals {
        mutations.append(.putRefusal(identifier, number, refusal))
      }
    }
    return mutations
  }
}
