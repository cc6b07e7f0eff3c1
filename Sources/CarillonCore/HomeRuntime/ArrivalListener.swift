/// Informs the features of a home of devices that arrive.
package final class ArrivalListener: Sendable {
    /// Is called when the proof of a device was found to be valid, before the session joins; twice if the device is read twice.
    let admitted: @Sendable (_ device: Device, _ proof: DeviceProof) -> Void
    /// Is called when the session has joined and its page was read.
    let arrived: @Sendable (_ device: Device, _ version: Int) -> Void

    /// The home keeps both closures, so they must not keep the home. They return at once.
    package init(
        admitted: @escaping @Sendable (_ device: Device, _ proof: DeviceProof) -> Void,
        arrived: @escaping @Sendable (_ device: Device, _ version: Int) -> Void
    ) {
        self.admitted = admitted
        self.arrived = arrived
    }
}
