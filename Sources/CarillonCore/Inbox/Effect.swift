/// What must happen in one transaction with an append. When it does not count any more, nothing is appended.
package enum Effect: Equatable, Sendable {
    /// What a ping found is written to its watch.
    case pinged(PingRecord)
    /// The back end spoke for itself: the channel believes again that it answers.
    case vouchedFor(ChannelSerial)
    /// The device is told of the status that it has since a moment.
    case statusTold(DeviceSerial, at: Timestamp)
    /// A subscription fires, if it is armed as it was when that was found, and no later firing was before.
    case fired(Firing.Target, on: ItemName, by: Int64, at: Timestamp)
    /// A firing that waited is told, if its subscription is as it was.
    case heldTold(Int64, at: Timestamp)
    /// An update is given to a device, if it lives and nothing else was done of it meanwhile.
    case updateOffered(UpdateOffer)
    /// An update that a device had received came to an end before the device was done with it.
    case updateRetracted(CompletionKey, as: CompletionMachine.State, at: Timestamp)
    /// A request of a service goes on.
    case request(RequestStep)
}
