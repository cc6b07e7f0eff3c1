/// Informs the features of a home of devices that arrive.
package final class ArrivalListener: Sendable {
    /// Called when the proof of a device was found to be valid, before the session joins; twice if the device is read twice.
    let admitted: @Sendable (_ device: Device, _ proof: DeviceProof) -> Void
    /// Called when the device was read, if the session joined. A newer session can have replaced it meanwhile.
    let arrived: @Sendable (_ device: Device, _ version: Int, _ session: any LiveSession) -> Void

    /// The home keeps both closures, so they must not keep the home. They return at once.
    package init(
        admitted: @escaping @Sendable (_ device: Device, _ proof: DeviceProof) -> Void,
        arrived: @escaping @Sendable (_ device: Device, _ version: Int, _ session: any LiveSession) -> Void
    ) {
        self.admitted = admitted
        self.arrived = arrived
    }
}
