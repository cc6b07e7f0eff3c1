import Synchronization

/// The devices whose sessions arrive from another home soon.
///
/// While no device is expected, a query takes no lock.
final class ExpectedSessions: Sendable {
    private struct State {
        /// The end of the wait for each device.
        var ends: [DeviceSerial: ContinuousClock.Instant] = [:]
        /// The latest of the ends, also of devices that have arrived.
        var last: ContinuousClock.Instant?
    }

    private let state = Mutex(State())
    private let hasSome = Atomic<Bool>(false)

    /// Whether no device is expected.
    var isEmpty: Bool { !hasSome.load(ordering: .relaxed) }

    func expect(_ device: DeviceSerial, until end: ContinuousClock.Instant) {
        state.withLock { state in
            state.ends[device] = end
            state.last = max(state.last ?? end, end)
            hasSome.store(true, ordering: .relaxed)
        }
    }

    /// Notes that the session of the device has arrived.
    func arrived(_ device: DeviceSerial) {
        guard !isEmpty else { return }
        state.withLock { state in
            state.ends[device] = nil
            if state.ends.isEmpty { forgetAll(&state) }
        }
    }

    /// Whether the device is expected. After the end of all waits, the devices that did not arrive are removed.
    func contains(_ device: DeviceSerial, at now: @autoclosure () -> ContinuousClock.Instant = .now) -> Bool {
        guard !isEmpty else { return false }
        let now = now()
        return state.withLock { state in
            if let last = state.last, last <= now { forgetAll(&state) }
            return state.ends[device].map { $0 > now } ?? false
        }
    }

    private func forgetAll(_ state: inout State) {
        state = State()
        hasSome.store(false, ordering: .relaxed)
    }
}
