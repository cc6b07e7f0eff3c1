import CarillonWire
import Synchronization

@testable import CarillonCore

/// A home that notes its calls, and answers arrivals and requests when the test lets it.
final class NotingHome: Home {
    enum Event: Equatable, Sendable {
        case arrives
        case connected(DeviceSerial)
        case read(DeviceSerial)
        case finished(MessageID)
        case left(DeviceSerial)
        /// By its name, for which a home searches all sessions.
        case leftByName
        case handles
        case handled(wasCancelled: Bool)
    }

    private struct State {
        var events: [Event] = []
        var sessions: [any LiveSession] = []
        var isHeld = false
        var held: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    var events: [Event] { state.withLock { $0.events } }
    /// The sessions of the arrivals, in their order.
    var sessions: [any LiveSession] { state.withLock { $0.sessions } }

    private func note(_ event: Event) { state.withLock { $0.events.append(event) } }

    /// From now on, arrivals and requests wait for ``release()``.
    func hold() { state.withLock { $0.isHeld = true } }

    func release() {
        let held = state.withLock { state in
            defer { (state.isHeld, state.held) = (false, []) }
            return state.held
        }
        for continuation in held { continuation.resume() }
    }

    private func awaitRelease() async {
        await withCheckedContinuation { continuation in
            let isHeld = state.withLock { state in
                if state.isHeld { state.held.append(continuation) }
                return state.isHeld
            }
            if !isHeld { continuation.resume() }
        }
    }

    /// The device of a name, whose serial is the last part of its identifier.
    static func device(_ number: Int64) -> Device {
        Device(
            serial: DeviceSerial(number), id: DeviceID(Bytes16(high: 0, low: UInt64(bitPattern: number))),
            app: AppSerial(1), appID: AppID.example, credentialHash: SecretHash(of: [1]),
            createdAt: Timestamp(milliseconds: 1), isAnonymous: false, seenAt: Timestamp(milliseconds: 1))
    }

    func arrive(
        _ name: DeviceName, _ proof: DeviceProof, _ load: PageRequest, speaking version: Int, openedAt: OpeningTime,
        as session: any LiveSession
    ) async throws(HomeFault) -> Arrived {
        guard case .id(let id, _) = name else { return .unknownDevice }
        state.withLock { state in
            state.events.append(.arrives)
            state.sessions.append(session)
        }
        await awaitRelease()
        let device = Self.device(Int64(bitPattern: id.value.low))
        note(.connected(device.serial))
        return .device(ArrivedDevice(device: device, page: .unread, reported: .none))
    }

    func read(_ load: PageRequest, of device: DeviceSerial) async throws(HomeFault) -> Result<InboxRead, StoreFault> {
        note(.read(device))
        return .success(.page(.unread))
    }

    func finish(_ answer: EnvelopeAnswer, of device: DeviceSerial) { note(.finished(answer.id)) }

    func leave(_ session: any LiveSession, of device: DeviceSerial) { note(.left(device)) }

    func leave(_ session: any LiveSession, of name: DeviceName) { note(.leftByName) }

    func handle(_ request: HomeRequest) async throws(HomeFault) -> HomeResponse {
        note(.handles)
        await awaitRelease()
        note(.handled(wasCancelled: Task.isCancelled))
        return HomeResponse(status: 200, fields: [], body: request.body)
    }

    func ask<Question: HomeQuestion>(
        _ question: Question
    ) async throws(HomeFault) -> Result<Question.Answer, any Error> {
        .failure(StoreFault(.unavailable, "the home has no answers"))
    }
}

extension AppID {
    fileprivate static var example: AppID {
        guard let app = AppID("com.example.app") else { preconditionFailure("The name of the app is not valid.") }
        return app
    }
}
