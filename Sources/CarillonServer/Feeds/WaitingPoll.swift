import CarillonCore
import CarillonWire
import Hummingbird
import Synchronization

/// A poll that found nothing and waits for news. It has no task meanwhile: whoever waits on its behalf looks again when it is told to,
/// and when the time is over.
final class WaitingPoll: LiveSession {
    /// Looks again. Nil: there is still nothing. `isLast`: the poll answers, whatever is found.
    typealias EvaluationSnapshot = @Sendable (_ isLast: Bool) async throws -> Response?

    private struct State {
        /// Something was stored since the last look.
        var hasNews = false
        var end: SessionEnd?
        var isOver = false
        var look: EvaluationSnapshot?
        var wake: (@Sendable () -> Void)?
    }

    let device: DeviceSerial
    let waitSeconds: Int
    /// Whether the head of the answer is all that is wanted.
    let isHead: Bool
    private let home: any LocalHome
    private let state = Mutex(State())

    /// Makes the poll a waiter for the inbox of a device until ``end()``.
    ///
    /// - Parameter home: The home of the device.
    init(of device: DeviceSerial, at home: any LocalHome, waitSeconds: Int, isHead: Bool) {
        self.device = device
        self.home = home
        self.waitSeconds = waitSeconds
        self.isHead = isHead
        home.addWaiter(self, for: device)
    }

    /// - Parameter look: How to look again.
    func wait(_ look: @escaping EvaluationSnapshot) { state.withLock { $0.look = look } }

    /// Looks again, and ends when there is an answer.
    func look(isLast: Bool) async throws -> Response? {
        let (look, end) = state.withLock { state in
            (state.hasNews, state.wake) = (false, nil)
            return (state.look, state.end)
        }
        guard let look else { return nil }
        do {
            if end == .deviceGone { throw DeviceRegistrar.credentialInvalid }
            guard let response = try await look(isLast || end != nil) else { return nil }
            self.end()
            return response
        } catch {
            self.end()
            throw error
        }
    }

    /// Calls this once, when it is time to look again; at once, where something happened meanwhile.
    func onNews(_ wake: @escaping @Sendable () -> Void) {
        let isTime = state.withLock { state in
            let isTime = !state.isOver && (state.hasNews || state.end != nil)
            state.wake = isTime || state.isOver ? nil : wake
            return isTime
        }
        if isTime { wake() }
    }

    /// Nobody waits any longer.
    func end() {
        let isFirst = state.withLock { state in
            defer { (state.isOver, state.look, state.wake) = (true, nil, nil) }
            return !state.isOver
        }
        if isFirst { home.removeWaiter(self, for: device) }
    }

    private func happened(_ change: (inout State) -> Void) {
        let wake = state.withLock { state in
            change(&state)
            defer { state.wake = nil }
            return state.wake
        }
        wake?()
    }

    // MARK: What happened to the inbox

    func storedMore() { happened { $0.hasNews = true } }

    func end(because reason: SessionEnd) { happened { $0.end = $0.end ?? reason } }

    // What is stored is looked for, and nothing is offered to it.
    func offer(_ envelope: Envelope) {}
    func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) { answer(false) }
    func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void) { done() }
    func settled(_ ids: [MessageID]) {}
}
