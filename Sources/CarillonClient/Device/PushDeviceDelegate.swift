/// Receives the events of a ``PushDevice``: one call at a time, in the order of the events, on no particular thread.
///
/// A change of status is reported before the event with its reason. A failed registration is reported before the status becomes
/// unknown.
public protocol PushDeviceDelegate: AnyObject, Sendable {
    /// The delegate was added.
    func didAddDelegate(to device: PushDevice)
    /// The delegate was removed. No call follows.
    func didRemoveDelegate(from device: PushDevice)
    /// The server accepted the token. It can be called again, because the token is sent once in each run of the app.
    func didRegister(_ device: PushDevice)
    /// The device was suspended.
    func didSuspend(_ device: PushDevice, because reason: PushDeviceSuspension)
    /// The device is not suspended any more.
    func didResume(_ device: PushDevice)
    /// The server rejected the token or the description of the device.
    func didFailRegistration(of device: PushDevice, _ error: PushError)
    /// The status changed.
    func didChangeStatus(of device: PushDevice, to status: PushDeviceStatus)
    /// The device's subscriptions are known, also if it has no subscriptions. It is called after each connection.
    func didUpdateSubscriptions(of device: PushDevice)
    /// The server's count for the number on the app's icon was reset.
    func didResetBadge(of device: PushDevice)
    /// The server could not be requested to reset the count.
    func didFailBadgeReset(of device: PushDevice, _ error: PushError)
    /// The process ended ten times while the app handled a firing: see ``PushDeviceEvent/firingCrashed(_:)``.
    func handlerCrashed(for firing: SubscriptionFiring, of device: PushDevice)
    /// The client's storage begins to fail: see ``PushDeviceEvent/storageFailed(_:)``.
    func didFailStorage(of device: PushDevice, _ error: PushError)
    /// The client's storage works again.
    func didRecoverStorage(of device: PushDevice)
    /// Calls were dropped, because the delegate did not return in time; `count` is their number. Up to 1,000 events and 16 MiB of
    /// their content wait for the delegates. The properties of ``PushDevice`` have the present state.
    func didMissEvents(_ count: Int, of device: PushDevice)
}

/// The default implementations do nothing, so that a delegate implements only the methods that it needs.
extension PushDeviceDelegate {
    public func didAddDelegate(to device: PushDevice) {}
    public func didRemoveDelegate(from device: PushDevice) {}
    public func didRegister(_ device: PushDevice) {}
    public func didSuspend(_ device: PushDevice, because reason: PushDeviceSuspension) {}
    public func didResume(_ device: PushDevice) {}
    public func didFailRegistration(of device: PushDevice, _ error: PushError) {}
    public func didChangeStatus(of device: PushDevice, to status: PushDeviceStatus) {}
    public func didUpdateSubscriptions(of device: PushDevice) {}
    public func didResetBadge(of device: PushDevice) {}
    public func didFailBadgeReset(of device: PushDevice, _ error: PushError) {}
    public func handlerCrashed(for firing: SubscriptionFiring, of device: PushDevice) {}
    public func didFailStorage(of device: PushDevice, _ error: PushError) {}
    public func didRecoverStorage(of device: PushDevice) {}
    public func didMissEvents(_ count: Int, of device: PushDevice) {}
}
