/// The kinds of envelope, as the store numbers them, and how each behaves: the one table of it.
package enum EnvelopeKind: Int, CaseIterable, Sendable {
    case message = 0
    case channelClosed = 1
    case channelError = 2
    case pingFailed = 3
    case recovered = 4
    case deviceStatus = 5
    case fired = 6
    case update = 7
    case retraction = 8
    case serviceRequest = 9
    case serviceReply = 10
    case serviceNotice = 11

    package static let updates: Set<EnvelopeKind> = [.update, .retraction]
    package static let services: Set<EnvelopeKind> = [.serviceRequest, .serviceReply, .serviceNotice]

    package struct Behaviour: Equatable, Sendable {
        /// It is gone when its origin is.
        package var endsWithOrigin: Bool
        /// With it its origin ends, of which it tells.
        package var endsOrigin: Bool
        /// It has a sender who may ask what became of it.
        package var keepsOutcome: Bool
        /// A full inbox refuses it. What is not refused takes room all the same.
        package var isRefusedWhenFull: Bool
        /// It tells of something that is written with it, and is nothing without it.
        package var needsEffect: Bool
        /// A device that sleeps may be woken for it.
        package var mayWake: Bool
        /// The first version of Carillon's extension whose clients know it; 0: those that speak nothing but Mozilla's protocol
        /// do. For a client that does not it leaves the inbox as unsupported.
        package var firstVersion: Int
        /// Whether the envelope leaves the inbox when the device's user changes.
        package var userChange: UserChangeExtent
        /// It stays in the inbox of a client that does not know it: the vendor's service may show it all the same, or the app has
        /// another client that does.
        package var isForAnyClient = false
        /// What becomes of it is written down with its origin.
        package var isNotifiedToOrigin = false
    }

    package var behaviour: Behaviour {
        switch self {
        case .message:
            Behaviour(
                endsWithOrigin: true, endsOrigin: false, keepsOutcome: true, isRefusedWhenFull: true, needsEffect: false,
                mayWake: true, firstVersion: 0, userChange: .endsIfOfUser)
        case .channelClosed, .channelError:
            Behaviour(
                endsWithOrigin: false, endsOrigin: true, keepsOutcome: false, isRefusedWhenFull: false, needsEffect: false,
                mayWake: false, firstVersion: 1, userChange: .stays)
        case .pingFailed, .recovered:
            Behaviour(
                endsWithOrigin: true, endsOrigin: false, keepsOutcome: false, isRefusedWhenFull: false, needsEffect: true,
                mayWake: false, firstVersion: 1, userChange: .endsIfOfUser)
        case .deviceStatus:
            Behaviour(
                endsWithOrigin: true, endsOrigin: false, keepsOutcome: false, isRefusedWhenFull: false, needsEffect: true,
                mayWake: false, firstVersion: 2, userChange: .stays)
        case .fired:
            Behaviour(
                endsWithOrigin: true, endsOrigin: false, keepsOutcome: false, isRefusedWhenFull: true, needsEffect: true,
                mayWake: true, firstVersion: 4, userChange: .endsIfOfUser, isForAnyClient: true)
        case .update:
            Behaviour(
                endsWithOrigin: true, endsOrigin: false, keepsOutcome: false, isRefusedWhenFull: true, needsEffect: true,
                mayWake: true, firstVersion: 5, userChange: .ends, isForAnyClient: true, isNotifiedToOrigin: true)
        case .retraction:
            Behaviour(
                endsWithOrigin: false, endsOrigin: false, keepsOutcome: false, isRefusedWhenFull: false, needsEffect: true,
                mayWake: false, firstVersion: 5, userChange: .ends, isForAnyClient: true)
        case .serviceRequest, .serviceReply:
            Behaviour(
                endsWithOrigin: true, endsOrigin: false, keepsOutcome: false, isRefusedWhenFull: true, needsEffect: true,
                mayWake: true, firstVersion: 6, userChange: .ends, isForAnyClient: true)
        case .serviceNotice:
            Behaviour(
                endsWithOrigin: true, endsOrigin: false, keepsOutcome: false, isRefusedWhenFull: false, needsEffect: true,
                mayWake: true, firstVersion: 6, userChange: .ends, isForAnyClient: true)
        }
    }
}
