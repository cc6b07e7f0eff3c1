/// Informs the features of a home of devices that arrive.
package final class ArrivalListener: Sendable {
    /// Called after the proof of a device was found valid, and before the session joins. Called twice if the device is read
    /// twice.
    let admitted: @Sendable (_ device: Device, _ proof: DeviceProof) -> Void
    /// Called after the device was read, if the session joined. A newer session can have replaced it by then.
    let arrived: @Sendable (_ device: Device, _ version: Int, _ session: any LiveSession) -> Void

    /// The home keeps both closures, so they must not have a strong reference to the home. They return at once.
    package init(
        admitted: @escaping @Sendable (_ device: Device, _ proof: DeviceProof) -> Void,
        arrived: @escaping @Sendable (_ device: Device, _ version: Int, _ session: any LiveSession) -> Void
    ) {
        self.admitted = admitted
        self.arrived = arrived
    }
}
