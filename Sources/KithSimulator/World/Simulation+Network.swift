internal import KithCore
internal import KithCrypto

extension Simulation {
  private static let silenceMicroseconds: UInt64 = 60_000_000
  /// The time to prove membership (`Docs/Protocol.md`, "Handshake").
  private static let strangerMicroseconds: UInt64 = 5_000_000

  // MARK: Dialling

  /// Dials another device unless connected, and repeats later. The next one in the ring replaces a
  /// device that is gone, so that the ring stays whole.
  func dial(from number: DeviceNumber, to target: DeviceNumber) {
    guard !devices[number].isGone else { return }
    let ring = (0..<devices.count).map { (target + $0) % devices.count }
    guard let other = ring.first(where: { $0 != number && !devices[$0].isGone }),
      devices[other].network == devices[number].network
    else { return }
    let isConnected = connections.values.contains {
      $0.isOpen && $0.pipes.contains { $0.from == number && $0.to == other }
    }
    let wait = UInt64.random(
      in: isConnected ? 3_000_000...6_000_000 : 300_000...3_000_000, using: &networkChance)
    queue.add(.dial(number, to: other), at: now + wait)
    guard !isConnected, isUp(number), isUp(other), canPass(number, other), canPass(other, number)
    else { return }
    let handshake = latency() + latency() + latency()
    queue.add(
      .established(number, to: other, lives: [devices[number].life, devices[other].life]),
      at: now + handshake)
  }

  /// Dials members that are left behind from now on too, as the overlay's plan does.
  func reach(_ members: [DeviceID], from device: SimulatedDevice) {
    for other in devices
    where members.contains(other.keys.id) && other.original == nil && !other.isGone
      && !device.targets.contains(other.number)
    {
      device.targets.append(other.number)
      queue.add(
        .dial(device.number, to: other.number),
        at: now + UInt64.random(in: 0...500_000, using: &networkChance))
    }
  }

  func isUp(_ number: DeviceNumber) -> Bool {
    let device = devices[number]
    // A joining device does not listen yet.
    return device.isRunning && !device.isPaused && !device.isFailing && device.join == nil
  }

  func canPass(_ from: DeviceNumber, _ to: DeviceNumber) -> Bool {
    devices[from].network == devices[to].network && !blocked.contains([from, to])
  }

  func latency() -> UInt64 {
    let usual = setup.latencyMicroseconds
    let time = UInt64.random(in: usual / 2 + 1...usual * 2 + 1, using: &networkChance)
    guard strikes(.delay) else { return time }
    return time + UInt64.random(in: 100_000...8_000_000, using: &networkChance)
  }

  private func strikes(_ fault: Fault) -> Bool {
    guard !isHealing, faults.contains(fault) else { return false }
    return Int.random(in: 0..<1_024, using: &networkChance) < setup.faultChance
  }

  func establish(from: DeviceNumber, to: DeviceNumber, _ lives: [Int]) throws(Violation) {
    let (dialler, listener) = (devices[from], devices[to])
    guard dialler.life == lives[0], listener.life == lives[1], isUp(from), isUp(to),
      canPass(from, to), canPass(to, from)
    else { return }
    let number = nextConnection
    nextConnection += 1
    let sessions = (0...1).map { offset in SessionID(rawValue: nextSession + UInt64(offset)) }
    nextSession += 2
    let pipes = [
      Connection.Pipe(from: from, to: to, life: listener.life, session: sessions[1]),
      Connection.Pipe(from: to, to: from, life: dialler.life, session: sessions[0]),
    ]
    connections[number] = Connection(pipes: pipes, openedAt: now)
    self.sessions[from, default: [:]][sessions[0]] = (number, 0)
    self.sessions[to, default: [:]][sessions[1]] = (number, 1)
    tally.count("connections")
    trace.note("connection", [UInt64(from), UInt64(to), UInt64(number)], at: now)
    let peers = [peer(listener, isDialled: true), peer(dialler, isDialled: false)]
    for (end, device) in [dialler, listener].enumerated() {
      guard let peer = peers[end] else { continue }
      let isKnown = device.replica?.roster.device(withTransportKey: peer.transportKey) != nil
      connections[number]?.promoted[end] = isKnown
    }
    if connections[number]?.promoted != [true, true] {
      queue.add(.strangerTime(number), at: now + Self.strangerMicroseconds)
    }
    for (end, device) in [dialler, listener].enumerated() {
      guard let peer = peers[end] else { continue }
      try hand(.connected(sessions[end], peer), to: device)
    }
  }

  private func peer(_ device: SimulatedDevice, isDialled: Bool) -> SessionPeer? {
    guard let replica = device.replica else { return nil }
    let port = UInt16(4_000 + device.number)
    return SessionPeer(
      transportKey: device.keys.transportPublicKey,
      hello: replica.hello(port: port, at: device.clock.instant(at: now)), isDialled: isDialled,
      address: "127.0.0.1:\(port)")
  }

  func promote(_ session: SessionID, of device: SimulatedDevice) {
    guard let (number, end) = sessions[device.number]?[session] else { return }
    connections[number]?.promoted[end] = true
  }

  func endStranger(_ number: ConnectionNumber) {
    guard let connection = connections[number], connection.isOpen,
      connection.promoted != [true, true]
    else { return }
    tally.count("strangers cut off")
    drop(number)
  }

  // MARK: Sending

  func send(
    _ bytes: [UInt8], on session: SessionID, from device: SimulatedDevice, isForged: Bool = false
  ) throws(Violation) {
    guard let (number, end) = sessions[device.number]?[session],
      connections[number]?.isOpen == true
    else { return }
    trace.note("send", [UInt64(device.number), UInt64(number), UInt64(bytes.count)], at: now)
    trace.note(bytes: bytes)
    if lastMessage?.bytes != bytes {
      guard let message = InboundMessage(decoding: bytes, account: account) else {
        // A receiver closes the session of a malformed message.
        if isForged { return drop(number) }
        throw Violation(.bounds, "\(device.name) sent a malformed message")
      }
      lastMessage = (bytes, message)
    }
    guard let message = lastMessage?.message else { return }
    if !isForged { try checkSent(message, bytes, by: device) }
    tally.count("messages")
    if strikes(.loss) {
      tally.count("messages lost with their connection")
      return drop(number)
    }
    if strikes(.silentLoss) { return tally.count("messages lost") }
    let copies = strikes(.duplication) ? 2 : 1
    if copies == 2 { tally.count("messages that came twice") }
    for _ in 0..<copies { put(message, bytes.count, into: number, end) }
    try checkPipe(number, end)
    fill(number, end)
  }

  private func put(
    _ message: InboundMessage, _ bytes: Int, into number: ConnectionNumber, _ end: Int
  ) {
    guard let pipe = connections[number]?.pipes[end] else { return }
    var arrival = now + latency()
    if strikes(.reordering) {
      tally.count("messages that overtook others")
    } else {
      arrival = max(arrival, pipe.lastArrival)
    }
    let speeds = [devices[pipe.from].bytesPerSecond, devices[pipe.to].bytesPerSecond]
    if let slowest = speeds.compactMap({ $0 }).min() {
      arrival += UInt64(bytes) * 1_000_000 / UInt64(slowest)
    }
    pipe.put(Connection.Packet(bytes: bytes, message: message, arrivesAt: arrival))
    queue.add(.deliver(number, end: end), at: arrival)
  }

  private func fill(_ number: ConnectionNumber, _ end: Int) {
    guard let connection = connections[number], connection.isOpen else { return }
    let pipe = connection.pipes[end]
    let sender = connection.pipes[1 - end]
    let isFull =
      pipe.isFull
      ? pipe.bytes > Connection.lowWaterBytes : pipe.bytes > Connection.highWaterBytes
    if isFull != pipe.isFull {
      pipe.isFull = isFull
      queue.add(
        .input(pipe.from, life: sender.life, .writable(sender.session, !isFull)), at: now)
    }
    if pipe.isDrainAwaited && pipe.bytes <= Connection.lowWaterBytes {
      pipe.isDrainAwaited = false
      queue.add(.input(pipe.from, life: sender.life, .drained(sender.session)), at: now)
    }
  }

  func awaitDrain(on session: SessionID, of device: SimulatedDevice) {
    guard let (number, end) = sessions[device.number]?[session] else { return }
    connections[number]?.pipes[end].isDrainAwaited = true
    tally.count("waits for drain")
    fill(number, end)
  }

  // MARK: Arriving

  func deliver(_ number: ConnectionNumber, _ end: Int) throws(Violation) {
    guard let connection = connections[number], connection.isOpen,
      let packet = connection.pipes[end].packets.first, packet.arrivesAt <= now
    else { return }
    let pipe = connection.pipes[end]
    guard canPass(pipe.from, pipe.to), !devices[pipe.to].isPaused else {
      if !pipe.isStalled {
        pipe.isStalled = true
        let patience = UInt64.random(
          in: 20_000_000...Self.silenceMicroseconds, using: &networkChance)
        queue.add(.giveUp(number), at: now + patience)
      }
      return
    }
    pipe.removeFirst()
    trace.note("deliver", [UInt64(number), UInt64(end), UInt64(packet.bytes)], at: now)
    fill(number, end)
    guard devices[pipe.to].life == pipe.life else { return }
    if case .batch(let store, let changeSets, _) = packet.message.facts {
      for changeSet in changeSets { reference.note(changeSet, in: store) }
    }
    var message = packet.message
    // Production opens the entries of large messages ahead, and those of small ones when it judges.
    if packet.bytes.isMultiple(of: 2), let shell = devices[pipe.to].shell {
      message.open(with: shell.replica.entryOpener)
    }
    try hand(.received(pipe.session, message), to: devices[pipe.to])
  }

  func unstall(_ number: ConnectionNumber, to device: DeviceNumber) {
    guard let connection = connections[number], connection.isOpen else { return }
    for (end, pipe) in connection.pipes.enumerated() where pipe.isStalled && pipe.to == device {
      pipe.isStalled = false
      for packet in pipe.packets {
        queue.add(.deliver(number, end: end), at: max(now, packet.arrivesAt))
      }
    }
  }

  /// Lets all messages under way arrive soon, even those of slow devices.
  func hurry() {
    for number in connections.keys.sorted() {
      for end in 0...1 {
        guard let pipe = connections[number]?.pipes[end], pipe.lastArrival > now else { continue }
        for arrival in pipe.hurry(after: now, latency: setup.latencyMicroseconds) {
          queue.add(.deliver(number, end: end), at: arrival)
        }
      }
    }
  }

  func rejoin(_ device: DeviceNumber, _ other: DeviceNumber) {
    blocked.remove([device, other])
    blocked.remove([other, device])
    for number in connections.keys.sorted() {
      guard let pipes = connections[number]?.pipes,
        Set([pipes[0].from, pipes[0].to]) == Set([device, other])
      else { continue }
      unstall(number, to: device)
      unstall(number, to: other)
    }
  }

  // MARK: Ending

  func close(_ session: SessionID, of device: SimulatedDevice, because reason: CloseReason) {
    guard let (number, _) = sessions[device.number]?[session] else { return }
    tally.count("sessions closed: \(reason.rawValue)")
    drop(number)
  }

  /// Breaks a connection: messages under way are lost, and the sides learn of it later.
  func drop(_ number: ConnectionNumber) {
    guard connections[number]?.isOpen == true else { return }
    connections[number]?.isOpen = false
    trace.note("drop", [UInt64(number)], at: now)
    for end in 0...1 {
      connections[number]?.pipes[end].empty()
      let isLate = !isHealing && Int.random(in: 0..<8, using: &networkChance) == 0
      let late = isLate ? UInt64.random(in: 0...20_000_000, using: &networkChance) : 0
      queue.add(.ended(number, end: end), at: now + setup.latencyMicroseconds + late)
    }
  }

  func tell(ofEndOf number: ConnectionNumber, _ end: Int) throws(Violation) {
    guard let pipe = connections[number]?.pipes[end], !pipe.hasEnded else { return }
    pipe.hasEnded = true
    if connections[number]?.pipes.allSatisfy(\.hasEnded) == true { connections[number] = nil }
    sessions[pipe.to]?[pipe.session] = nil
    guard devices[pipe.to].life == pipe.life else { return }
    if devices[pipe.to].join != nil { return kill(devices[pipe.to]) }
    if devices[pipe.to].isPaused {
      devices[pipe.to].held.append(.input(pipe.to, life: pipe.life, .disconnected(pipe.session)))
    } else {
      try hand(.disconnected(pipe.session), to: devices[pipe.to])
    }
  }

  func giveUp(_ number: ConnectionNumber) {
    guard connections[number]?.pipes.contains(where: \.isStalled) == true else { return }
    tally.count("silent connections given up")
    drop(number)
  }

  func closeAll(of device: SimulatedDevice) {
    for number in connections.keys.sorted() {
      guard let pipes = connections[number]?.pipes,
        pipes[0].from == device.number || pipes[0].to == device.number
      else { continue }
      drop(number)
    }
  }
}
