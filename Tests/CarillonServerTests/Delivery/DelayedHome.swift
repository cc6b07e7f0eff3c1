import CarillonBasics
import CarillonCore
import Synchronization
import Testing

/// A link to a home, on which the test delays or loses one call of ``arrive(_:_:_:speaking:as:)``, or its answer.
final class DelayedHome: Home {
    /// The course of the next arrival.
    enum Course: Sendable {
        /// The home connects the device. The answer waits for ``release()``.
        case answeredLate
        /// The call reaches the home after ``release()``, and the home answers.
        case delayed
        /// The home connects the device, and the answer is lost.
        case answerLost
        /// The caller stops waiting. The call reaches the home after ``release()``.
        case calledLate
        /// The call does not reach the home.
        case unreachable
    }

    private struct State {
        var home: (any Home)?
        var course: Course?
        /// An arrival that has not reached the home.
        var lateCall: Task<Void, Never>?
        var connections = 0
        var leaves = 0
    }

    private let state = Mutex(State())
    private let reached = Signal()
    private let released = Signal()
    private let left = Signal()

    /// The number of devices that the home connected.
    var connections: Int { state.withLock { $0.connections } }
    /// The number of times that a session leaves.
    var leaves: Int { state.withLock { $0.leaves } }

    /// Returns the link to a home.
    func connected(to home: any Home) -> any Home {
        state.withLock { $0.home = home }
        return self
    }

    func next(_ course: Course) { state.withLock { $0.course = course } }

    /// Returns when an arrival or its answer waits for ``release()``.
    func hasReached() async { await reached.wait() }

    func release() { released.send() }

    /// Returns when the home removed a session.
    func hasLeft() async { await left.wait() }

    private var home: any Home {
        guard let home = state.withLock({ $0.home }) else { preconditionFailure("The link has no home.") }
        return home
    }

    func arrive(
        _ name: DeviceName, _ proof: DeviceProof, _ load: PageRequest, speaking version: Int, openedAt: OpeningTime,
        as session: any LiveSession
    ) async throws(HomeFault) -> Arrived {
        let home = home
        let course = state.withLock { state in
            defer { state.course = nil }
            return state.course
        }
        switch course {
        case nil:
            return try await home.arrive(name, proof, load, speaking: version, openedAt: openedAt, as: session)
        case .answeredLate:
            let arrived = note(try await home.arrive(name, proof, load, speaking: version, openedAt: openedAt, as: session))
            reached.send()
            await released.wait()
            return arrived
        case .delayed:
            reached.send()
            await released.wait()
            return note(try await home.arrive(name, proof, load, speaking: version, openedAt: openedAt, as: session))
        case .answerLost:
            _ = note(try await home.arrive(name, proof, load, speaking: version, openedAt: openedAt, as: session))
            throw HomeFault.outcomeUnknown
        case .calledLate:
            // Ends with the call, after the release.
            let call = Task {
                await released.wait()
                do throws(HomeFault) {
                    _ = note(try await home.arrive(name, proof, load, speaking: version, openedAt: openedAt, as: session))
                } catch {
                    Issue.record(error)
                }
            }
            state.withLock { $0.lateCall = call }
            throw HomeFault.outcomeUnknown
        case .unreachable:
            throw HomeFault.unreachable
        }
    }

    private func note(_ arrived: Arrived) -> Arrived {
        if arrived.device != nil { state.withLock { $0.connections += 1 } }
        return arrived
    }

    func read(_ load: PageRequest, of device: DeviceSerial) async throws(HomeFault) -> Result<InboxRead, StoreFault> {
        try await home.read(load, of: device)
    }

    func finish(_ answer: EnvelopeAnswer, of device: DeviceSerial) { home.finish(answer, of: device) }

    func leave(_ session: any LiveSession, of device: DeviceSerial) {
        let home = home
        leave { home.leave(session, of: device) }
    }

    func leave(_ session: any LiveSession, of name: DeviceName) {
        let home = home
        leave { home.leave(session, of: name) }
    }

    func handle(_ request: HomeRequest) async throws(HomeFault) -> HomeResponse { try await home.handle(request) }

    func ask<Question: HomeQuestion>(
        _ question: Question
    ) async throws(HomeFault) -> Result<Question.Answer, any Error> {
        try await home.ask(question)
    }

    /// Calls the home behind an arrival that has not reached it.
    private func leave(_ work: @escaping @Sendable () -> Void) {
        let call = state.withLock { state in
            state.leaves += 1
            return state.lateCall
        }
        guard let call else {
            work()
            return left.send()
        }
        // Ends with the call.
        Task {
            await call.value
            work()
            left.send()
        }
    }
}
