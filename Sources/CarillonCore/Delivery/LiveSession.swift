package import CarillonWire

/// A connection of a device that receives its envelopes. Every call returns at once and may come from any thread. Calls take
/// effect in the order in which they were made. The home has no lock during a call, so a session can call the home.
package protocol LiveSession: AnyObject, Sendable {
    /// An envelope was queued for the inbox. The session delivers it now if the window has room.
    func offer(_ envelope: Envelope)
    /// An envelope of TTL 0 is offered. The session delivers it now, or answers that it cannot be delivered.
    func offerVolatile(_ envelope: Envelope, answer: @escaping @Sendable (_ wasAccepted: Bool) -> Void)
    /// An envelope was queued for the inbox and is not offered.
    func storedMore()
    /// Envelopes were withdrawn. `done` is called when they can no longer be delivered.
    func withdrew(_ withdrawal: DeliveryMachine.Withdrawal, done: @escaping @Sendable () -> Void)
    /// The device acknowledged or rejected envelopes over another connection.
    func finished(_ ids: [MessageID])
    /// The service providers of the device's user have changed.
    func providersChanged()
    func end(because reason: SessionEnd)
    /// The device moves to another home. `done` is called when nothing more is delivered or loaded, until ``moved(_:)``.
    /// Envelopes that were read before are not delivered afterwards.
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
    /// The waiting poll ends, and its client polls again.
    package func moving(done: @escaping @Sendable () -> Void) {
        end(because: .moved)
        done()
    }

    package func moved(_ end: MoveEnd) {}

    /// Event streams and polls have no frame for this.
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
    /// The answers of the device cannot be written, and too many are waiting already.
    case storageUnavailable
    /// The device has another home, and the connection cannot arrive there.
    case moved
    /// The connection can no longer reach the home of the device.
    case linkLost
}
