/// The reason why a call of a home has no result.
package enum HomeFault: Error, Equatable {
    /// The device is in another shard than its name says. Nothing was done.
    case moved(to: Shard)
    /// The home cannot be reached. Nothing was done.
    case unreachable
    /// The home did not answer. The call can have taken effect, and must not be repeated.
    case outcomeUnknown
}

extension StoreFault {
    /// Makes the fault with which a connection ends if the home of its device did not answer.
    package init(_ fault: HomeFault) { self.init(.unavailable, "the home of the device did not answer: \(fault)") }
}
