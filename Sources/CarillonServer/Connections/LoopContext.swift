import NIOCore

/// What the connections of one event loop share.
struct LoopContext: Sendable {
    let executor: EventLoopExecutor
    let wheel: NIOLoopBound<SocketWheel>

    /// One for each event loop of the group.
    static func all(of group: any EventLoopGroup, slots: Int) async throws -> [ObjectIdentifier: LoopContext] {
        var contexts: [ObjectIdentifier: LoopContext] = [:]
        for eventLoop in group.makeIterator() {
            let wheel = try await eventLoop.submit {
                let wheel = SocketWheel(slots: slots)
                wheel.start(on: eventLoop)
                return NIOLoopBound(wheel, eventLoop: eventLoop)
            }.get()
            contexts[ObjectIdentifier(eventLoop)] = LoopContext(executor: EventLoopExecutor(eventLoop), wheel: wheel)
        }
        return contexts
    }
}
