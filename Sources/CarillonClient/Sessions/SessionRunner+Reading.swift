import Synchronization

/// What the session is at this moment.
extension SessionRunner {
    var move: SessionMove { session.withLock { $0.move } }

    var deviceID: String? { session.withLock { $0.registration.identity?.device } }

    var identity: DeviceIdentity? { session.withLock { $0.registration.identity } }

    /// The identity for requests beside the socket; nil while the server refuses its credential and the registration is repeated,
    /// so that they wait.
    var usableIdentity: DeviceIdentity? { session.withLock { $0.registration.mustRepeat ? nil : $0.registration.identity } }

    var updateScope: UpdateScope {
        session.withLock {
            UpdateScope(identity: $0.registration.identity, user: $0.user.taken, isUserPending: $0.user.pending != nil)
        }
    }

    /// How long it is until the next attempt to connect; nil when none is due.
    var retryDelay: Duration? {
        session.withLock { session in
            guard case .waiting(let until) = session.phase else { return nil }
            return max(.zero, until - .now)
        }
    }

    /// The time until the failed deregistration is sent again; nil if there is none.
    var deregistrationDelay: Duration? {
        session.withLock { session in session.deregistrations.dueAt.map { max(.zero, $0 - .now) } }
    }

    /// Whether something runs the session.
    var isRunning: Bool { session.withLock { $0.phase != .stopped } }

    /// Whether messages can arrive.
    var isLive: Bool { session.withLock { $0.phase == .live } }

    var device: PushDeviceMachine { session.withLock { $0.device } }

    var isUserPending: Bool { session.withLock { $0.user.pending != nil } }

    /// The number of what the app said of its user, until the server answers; nil if the app named the user whom the server knows.
    var pendingUserNumber: UInt64? {
        session.withLock { session in
            session.user.isOtherPending ? session.user.numbers.said : nil
        }
    }

    /// Whether the app named another user, of whom the server did not hear yet.
    var isOtherUserPending: Bool { pendingUserNumber != nil }

    /// The number of what the server took last of the user.
    var takenUserNumber: UInt64 { session.withLock { $0.user.numbers.taken } }

    func channel(_ identifier: String) -> ChannelMachine {
        session.withLock { $0.channels[identifier] } ?? ChannelMachine()
    }

    func inbox(of identifier: String) -> ChannelInbox {
        inboxes.withLock { inboxes in
            if let inbox = inboxes[identifier] { return inbox }
            let inbox = ChannelInbox(lastStored: storedBefore[identifier] ?? 0)
            inboxes[identifier] = inbox
            return inbox
        }
    }

    var deregistrations: [Deregistration] { session.withLock { $0.deregistrations.waiting } }

    var registration: String? { session.withLock { $0.registration.secret } }

    var renewal: String? { session.withLock { $0.registration.renewal } }

    var summaries: [PushChannelSummary] {
        let (channels, buffers) = session.withLock { ($0.channels.machines, $0.messages.buffers) }
        return Set(channels.keys).union(buffers.filter { $0.value.messages > 0 }.keys).sorted().map { identifier in
            PushChannelSummary(
                identifier: identifier, state: PushChannelState(channels[identifier]?.state ?? .none),
                waitingMessages: buffers[identifier]?.messages ?? 0, waitingBytes: buffers[identifier]?.bytes ?? 0,
                isBeingRead: inbox(of: identifier).isHeld)
        }
    }

    /// Whether messages wait of a channel that the app reads.
    var isHandlingMessages: Bool { summaries.contains { $0.isBeingRead && $0.waitingMessages > 0 } }

    var health: StorageHealth { store.health }
}
