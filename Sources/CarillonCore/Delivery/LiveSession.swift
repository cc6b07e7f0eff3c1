package import CarillonWire

/// A connection of a device that its envelopes come to. Every call returns at once, and may come from any thread; what was
/// called earlier takes effect earlier.
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
}

extension LiveSession {
    /// Feeds and polls have nothing to tell it with.
    package func providersChanged() {}
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
    /// The connection cannot reach the home of the device any longer.
    case linkLost
}
