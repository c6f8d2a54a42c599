/// Runs the bodies at once until the first ends, then cancels the others and waits for them.
package func race(_ bodies: [@Sendable () async -> Void]) async {
  await withTaskGroup(of: Void.self) { group in
    for body in bodies { group.addTask(operation: body) }
    await group.next()
    group.cancelAll()
  }
}
