/// The changes that firings cause, written in the transaction that appends their notification.
package enum FiringEffect: Equatable, Sendable {
    /// A subscription fires, if it is armed as it was when that was found, and no later firing of the item was before.
    case fired(Firing.Target, on: ItemName, by: Int64, at: Timestamp)
    /// A held firing is delivered, if its subscription is as it was.
    case heldTold(Int64, at: Timestamp)
}

extension Effect {
    /// Nil for an effect of another feature.
    package var firing: FiringEffect? {
        switch self {
        case .fired(let target, let item, let number, let at): .fired(target, on: item, by: number, at: at)
        case .heldTold(let number, let at): .heldTold(number, at: at)
        case .pinged, .vouchedFor, .statusTold, .updateOffered, .updateRetracted, .request: nil
        }
    }
}
