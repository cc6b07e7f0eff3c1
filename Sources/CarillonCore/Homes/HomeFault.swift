package import Logging

/// The reason why a call to a home has no result.
package enum HomeFault: Error, Equatable {
    /// Another home has the shard. Nothing was done.
    case moved(to: Shard)
    /// The home cannot be reached, or the shard is still closing for a move. Nothing was done.
    case unreachable
    /// The home did not answer. The call can have taken effect, and must not be repeated.
    case outcomeUnknown
}

extension StoreFault {
    /// Makes the fault of work that needs the home. Its kind states whether the home can have done something.
    package init(_ fault: HomeFault) {
        let kind: Kind =
            switch fault {
            case .moved, .unreachable: .unreachable
            case .outcomeUnknown: .outcomeUnknown
            }
        self.init(kind, "cannot use the home: \(fault)")
    }

    /// Makes the fault with which a connection ends because it cannot use the home of its device, and logs the reason.
    package init(_ fault: HomeFault, logger: Logger) {
        logger.warning("cannot use home of device; ending connection", metadata: ["reason": "\(fault)"])
        self.init(fault)
    }
}
