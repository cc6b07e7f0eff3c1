import CarillonCore
import NIOCore

/// The objects that the connections of one event loop share.
struct LoopContext: Sendable {
    let executor: EventLoopExecutor
    let wheel: NIOLoopBound<ConnectionWheel>
    let date: NIOLoopBound<DateHeader>

    /// Returns a context for each event loop of the group.
    static func all(
        of group: any EventLoopGroup, slots: Int, time: TimeSource
    ) async throws -> [ObjectIdentifier: LoopContext] {
        var contexts: [ObjectIdentifier: LoopContext] = [:]
        for eventLoop in group.makeIterator() {
            contexts[ObjectIdentifier(eventLoop)] = try await eventLoop.submit {
                let wheel = ConnectionWheel(slots: slots)
                wheel.start(on: eventLoop)
                return LoopContext(
                    executor: EventLoopExecutor(eventLoop), wheel: NIOLoopBound(wheel, eventLoop: eventLoop),
                    date: NIOLoopBound(DateHeader(time: time), eventLoop: eventLoop))
            }.get()
        }
        return contexts
    }
}
