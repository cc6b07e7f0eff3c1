import CarillonCore
import CarillonWire
import Hummingbird
import Synchronization

/// A poll that found no envelope and waits for changes. It has no task while it waits. Its owner reads the inbox again after a
/// notification, and when the time is over.
final class WaitingPoll: LiveSession {
    /// Reads the inbox again. Returns nil if there is still no envelope. If `isLast` is true, the poll returns an answer in any
    /// case.
    typealias ReadInbox = @Sendable (_ isLast: Bool) async throws -> Response?

    private struct State {
        /// Whether an envelope was stored since the last read.
        var hasChange = false
        var end: SessionEnd?
        var isOver = false
        var read: ReadInbox?
        var wake: (@Sendable () -> Void)?
    }

    let device: DeviceSerial
    let waitSeconds: Int
    /// Whether only the head of the answer was requested.
    let isHead: Bool
    private let home: any LocalHome
    private let state = Mutex(State())

    /// Registers the poll for changes of a device's inbox, until ``end()``.
    ///
    /// - Parameter home: The home of the device.
    init(of device: DeviceSerial, at home: any LocalHome, waitSeconds: Int, isHead: Bool) {
        self.device = device
        self.home = home
        self.waitSeconds = waitSeconds
        self.isHead = isHead
        home.addWaiter(self, for: device)
    }

    /// - Parameter read: Reads the inbox again.
    func wait(_ read: @escaping ReadInbox) { state.withLock { $0.read = read } }

    /// Reads the inbox again. The poll ends if there is an answer.
    func look(isLast: Bool) async throws -> Response? {
        let (read, end) = state.withLock { state in
            (state.hasChange, state.wake) = (false, nil)
            return (state.read, state.end)
        }
        guard let read else { return nil }
        do {
            if end == .deviceGone { throw DeviceRegistrar.credentialInvalid }
            guard let response = try await read(isLast || end != nil) else { return nil }
            self.end()
            return response
        } catch {
            self.end()
            throw error
        }
    }

    /// Sets a function that is called once when the inbox must be read again. It is called at once if a change occurred
    /// meanwhile.
    func onChange(_ wake: @escaping @Sendable () -> Void) {
        let isTime = state.withLock { state in
            let isTime = !state.isOver && (state.hasChange || state.end != nil)
            state.wake = isTime || state.isOver ? nil : wake
            return isTime
        }
        if isTime { wake() }
    }

    /// Ends the poll, because its request is over.
    func end() {
        let isFirst = state.withLock { state in
            defer { (state.isOver, state.read, state.wake) = (true, nil, nil) }
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

    // MARK: Changes of the inbox

    func storedMore() { happened { $0.hasChange = true } }

    func end(because reason: SessionEnd) { happened { $0.end = $0.end ?? reason } }

    // A poll reads stored envelopes itself, so offers are ignored.
    func offer(_ envelope: Envelope) {}
    func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (Bool) -> Void) { answer(false) }
    func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void) { done() }
    func finished(_ ids: [MessageID]) {}
}
