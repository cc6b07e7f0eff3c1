package import CarillonWire

/// A home of this process, as features use it: the inboxes and the connections of its devices.
///
/// A feature and a route use the home for which they work. A caller passes only devices and messages of that home to a home.
/// Connections use a ``Home``.
package protocol LocalHome: AnyObject, Sendable {
    /// The shards of this home, except shards that move to another home now. A shard that moves is in the set of no home.
    /// Therefore, work that is not repeated must cover all shards, by any home.
    var shards: ShardSet { get }
    /// Whether the shard belongs to this home, also while it moves to another home. A home that has all shards does not evaluate
    /// the argument.
    func has(_ shard: @autoclosure () -> Shard) -> Bool
    /// Whether the device is in a shard of this home, also while it moves to another home.
    func has(_ device: DeviceSerial) -> Bool
    /// Whether work on the shard can begin at this home. While a shard moves, parts of work that is under way can begin until the
    /// shard is closed.
    func isOpen(_ shard: @autoclosure () -> Shard) -> Bool
    /// Does work for a device. The device does not move to another home during the work. Waits a short time for the end of a
    /// move.
    ///
    /// - Throws: The error of the work; ``StoreFault`` if the device still moves after the wait, or is not in a shard of this
    ///   home.
    func inside<Result>(of device: DeviceSerial, _ work: () async throws -> Result) async throws -> Result
    /// The present epoch of positions.
    var epoch: Int64 { get }

    // MARK: Delivery

    /// Makes an envelope with its identifier, and delivers it to a device. While the device moves, the delivery waits for the end
    /// of the move. If the device has another home then, the delivery fails.
    ///
    /// - Parameter then: Receives the result when the promise of the mode is fulfilled. It can be called before this method
    ///   returns, from any thread, and while the home handles the device: it must not call the home for the same device.
    func deliver(
        to device: DeviceSerial, _ mode: DeliveryMode, rules: AppendRules,
        _ make: @escaping @Sendable (MessageID) -> Envelope,
        then: @escaping @Sendable (MessageID, InboxResult) -> Void
    )
    /// Delivers an envelope to a device, and returns when the promise of the mode is fulfilled.
    func deliver(
        to device: DeviceSerial, _ mode: DeliveryMode, rules: AppendRules,
        _ make: @escaping @Sendable (MessageID) -> Envelope
    ) async -> InboxResult
    /// Delivers an envelope that is stored to a device. The rules are made with the identifier as well, because they contain it.
    func deliver(
        keptBy device: DeviceSerial, _ make: @escaping @Sendable (MessageID) -> (Envelope, AppendRules)
    ) async -> InboxResult
    /// Sends an envelope to the device's connection without storing it.
    ///
    /// - Returns: Whether a connection accepted the envelope.
    func sendWithoutStoring(to device: DeviceSerial, _ make: @escaping @Sendable (MessageID) -> Envelope) async -> Bool

    // MARK: Inboxes

    /// Reads an inbox. Each envelope that was queued for the device before the call is found.
    ///
    /// - Throws: ``StoreFault``.
    func waiting(device: DeviceSerial, _ load: PageRequest) async throws -> InboxRead
    func waitingCount(device: DeviceSerial) async throws -> Int
    /// Returns the record of a message, or nil if the message is unknown or was removed.
    ///
    /// - Throws: ``StoreFault``, also if the outcome of the message is known and not written yet.
    func record(of id: MessageID) async throws -> MessageRecord?
    /// Withdraws a message for its sender. When this method returns, no connection can deliver the message.
    ///
    /// - Returns: Whether the message was waiting.
    func cancel(_ id: MessageID, of device: DeviceSerial) async throws -> Bool
    /// Withdraws an envelope from an inbox. When this method returns, no connection can deliver the envelope.
    ///
    /// - Returns: Whether the envelope was waiting, also if its record is not kept.
    func takeBack(_ id: MessageID, from device: DeviceSerial) async throws -> Bool
    /// Removes envelopes from an inbox with an outcome. When this method returns, the outcome is on disk, and no connection can
    /// deliver the envelopes.
    ///
    /// - Throws: ``StoreFault`` if an earlier result of an envelope of the device is not on disk.
    func takeOut(_ envelopes: [MessageID], of device: DeviceSerial, as outcome: Outcome) async throws
    /// Finishes envelopes whose results a device reported in another way than by its session. Returns when the results are on
    /// disk.
    ///
    /// - Throws: ``StoreFault`` if a result of an envelope of the device is not on disk.
    func finish(_ answers: [EnvelopeAnswer], device: DeviceSerial) async throws
    /// Finishes an envelope whose result a device reported. A result that cannot be written is kept and written later. If too
    /// many results are kept, the device's session ends.
    ///
    /// - Returns: Whether the result was accepted.
    @discardableResult
    func finish(_ id: MessageID, device: DeviceSerial, _ outcome: Outcome, code: Int?) -> Bool
    /// Waits until each earlier change of the device is on disk, or failed.
    func flush(_ device: DeviceSerial) async

    /// Returns the time at which a read of a device and its inbox begins, for ``isOutdated(_:readAfter:)``.
    func beginVisit() -> InboxChangeClock.Moment
    /// Whether a read of the device's inbox that began after the moment can lack an envelope that was queued before this call, or
    /// contain an envelope that was withdrawn before this call.
    func isOutdated(_ device: DeviceSerial, readAfter moment: InboxChangeClock.Moment) -> Bool

    // MARK: Withdrawals

    /// Withdraws envelopes from the device's session. Returns when the session cannot deliver them.
    func withdraw(_ withdrawal: DeliveryMachine.Withdrawal, from device: DeviceSerial) async
    /// Withdraws envelopes from the device's session, and calls `then` when the session cannot deliver them.
    func withdraw(
        _ withdrawal: DeliveryMachine.Withdrawal, from device: DeviceSerial, then: @escaping @Sendable () -> Void)
    /// Notes a withdrawal of something that any device of the app can have. Then returns the connected devices of the app, and
    /// devices whose app is not known. A device that connects at the same time has joined before the note, or reads its inbox
    /// again because of it.
    func noteWithdrawal(fromAllOf app: AppSerial) -> [DeviceSerial]
    /// Removes an envelope from the device's session after the store removed it by its TTL. Reads of the inbox do not become
    /// outdated.
    func expired(_ position: Int64, of device: DeviceSerial)

    // MARK: Connections

    /// Whether the device has a session. A session that moves from another home counts; a waiting poll does not.
    func isConnected(_ device: DeviceSerial) -> Bool
    /// Whether the device has a session or a waiting poll.
    func isPresent(_ device: DeviceSerial) -> Bool
    /// Informs the device's session that the providers of its user changed.
    func providersChanged(for device: DeviceSerial)
    /// Ends the sessions of the devices, and the polls that wait for their inboxes.
    func end(_ devices: [DeviceSerial], because reason: SessionEnd)
    /// Informs the waiter of each envelope that is stored for the device from now on, and of the end of the device. The waiter is
    /// registered in addition to the device's session and other waiters. It gets no envelopes itself.
    func addWaiter(_ waiter: any LiveSession, for device: DeviceSerial)
    func removeWaiter(_ waiter: any LiveSession, for device: DeviceSerial)

    // MARK: All devices

    /// The number of devices with a session, and the number of waiters.
    var population: (sessions: Int, waiters: Int) { get }
    /// Returns the number and size of everything that waits in all inboxes together.
    func waitingInAll() async throws -> InboxUsage.Waiting
    /// Ends each session and each waiter.
    func endAll(because reason: SessionEnd)
    /// Waits until each earlier change is on disk, or failed.
    func flush() async
    /// Tries again to write the changes that could not be written.
    func writeUnwritten() async
    /// Whether changes are kept that could not be written.
    var hasUnwritten: Bool { get }
}

extension LocalHome {
    /// - Throws: ``HomeFault/moved(to:)`` if another home has the device.
    package func checkHas(_ device: DeviceSerial) throws(HomeFault) {
        guard has(device) else { throw .moved(to: Shard(of: device)) }
    }

    /// Checks that the home has a device, in the shard of the request that names the device.
    ///
    /// - Parameter shard: The shard of the request's pass; nil if no move waits for the request.
    /// - Throws: ``HomeFault/moved(to:)`` if the device is in another shard, or another home has the device.
    package func checkHas(_ device: DeviceSerial, in shard: Shard?) throws(HomeFault) {
        guard has(device), shard == nil || shard == Shard(of: device) else { throw .moved(to: Shard(of: device)) }
    }

    /// Checks that the home has a shard. A home that has all shards does not compute it.
    ///
    /// - Throws: ``HomeFault/moved(to:)`` if another home has the shard.
    package func checkHas(_ shard: @autoclosure () -> Shard) throws(HomeFault) {
        guard has(shard()) else { throw .moved(to: shard()) }
    }

    /// Brings an envelope without rules to a device, and returns when the promise of the mode is kept.
    package func deliver(
        to device: DeviceSerial, _ mode: DeliveryMode, _ make: @escaping @Sendable (MessageID) -> Envelope
    ) async -> InboxResult {
        await deliver(to: device, mode, rules: AppendRules(), make)
    }
}
