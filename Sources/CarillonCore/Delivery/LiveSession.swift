package import CarillonWire

/// A connection of a device that its envelopes come to. Every call returns at once, and may come from any thread; what was
/// called earlier takes effect earlier. The home has no lock during a call, so a session can call the home back.
package protocol LiveSession: AnyObject, Sendable {
    /// An envelope was queued for the inbox; give it now if the window allows.
    func offer(_ envelope: Envelope)
    /// An envelope of TTL 0: give it now, or say that it cannot be given.
    func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (_ wasGiven: Bool) -> Void)
    /// Something was queued for the inbox that is not offered.
    func storedMore()
    /// Something was withdrawn; `done` is called when it can no longer be given.
    func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void)
    /// The device answered for envelopes by another way than this connection.
    func settled(_ ids: [MessageID])
    /// Who provides services to the device's user is another by now.
    func providersChanged()
    func end(because reason: SessionEnd)
    /// The device moves to another home. `done` is called when nothing more is given or loaded, until ``moved(_:)``. What was read before is
    /// not given afterwards.
    func moving(done: @escaping @Sendable () -> Void)
    /// The move is over. The home calls it once for each call of ``moving(done:)``, and not for a session that left meanwhile, or for a
    /// waiter (``LocalHome/addWaiter(_:for:)``). A session that ended does not arrive.
    func moved(_ end: MoveEnd)
    /// The executor of the work that follows the arrival of the session. Nil: any thread can do the work.
    var executor: (any TaskExecutor)? { get }
}

/// The end of a move, for a session of the device.
package enum MoveEnd: Sendable {
    /// The device has the same home.
    case stays
    /// The device has another home, where the connection is not the session of the device. It ends.
    case gone
    /// The device has another home. The session arrives there by one call.
    case arrives(@Sendable () async -> ArrivedAgain)
}

/// The result of the arrival of a session at the new home of its device.
package enum ArrivedAgain: Sendable {
    case joined
    /// The device was deleted, or has another credential.
    case deviceGone
    case failed(StoreFault)
}

extension LiveSession {
    /// A poll that waits ends, and its client polls again.
    package func moving(done: @escaping @Sendable () -> Void) {
        end(because: .moved)
        done()
    }

    package func moved(_ end: MoveEnd) {}

    /// Feeds and polls have nothing to tell it with.
    package func providersChanged() {}

    package var executor: (any TaskExecutor)? { nil }
}

package enum SessionEnd: Equatable, Sendable {
    /// A newer connection of the same device.
    case replaced
    /// The device, or its app, was deleted.
    case deviceGone
    /// The server is about to stop.
    case serverStops
    /// What the device answered cannot be written, and too much is kept already.
    case storageUnavailable
    /// The device has another home, and the connection cannot arrive there.
    case moved
    /// The connection cannot reach the home of the device any longer.
    case linkLost
}
