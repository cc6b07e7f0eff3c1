/// Is called for what happens to a ``PushDevice``: one call at a time, in the order in which it happened, on no particular thread.
///
/// A change of status is called before the event that says why; a refusal before the status becomes unknown.
public protocol PushDeviceDelegate: AnyObject, Sendable {
    /// The delegate was added.
    func didAddDelegate(to device: PushDevice)
    /// The delegate was removed; nothing is called after this.
    func didRemoveDelegate(from device: PushDevice)
    /// The server took the token. It may be called again: the token is said once in each run of the app.
    func didRegister(_ device: PushDevice)
    /// The device was suspended.
    func didSuspend(_ device: PushDevice, because reason: PushDeviceSuspension)
    /// The device is not suspended any more.
    func didResume(_ device: PushDevice)
    /// The server refused the token or what stands beside it.
    func didFailRegistration(of device: PushDevice, _ error: PushError)
    /// The status is another than before.
    func didChangeStatus(of device: PushDevice, to status: PushDeviceStatus)
    /// The device's subscriptions are known, also when there are none: after each connection.
    func didUpdateSubscriptions(of device: PushDevice)
    /// The number that the server counts for the app's icon begins anew.
    func didResetBadge(of device: PushDevice)
    /// The server could not be notified to begin anew.
    func didFailBadgeReset(of device: PushDevice, _ error: PushError)
    /// The process ended ten times while the app handled a firing: see ``PushDeviceEvent/firingCrashed(_:)``.
    func handlerCrashed(for firing: SubscriptionFiring, of device: PushDevice)
    /// The client's storage begins to fail: see ``PushDeviceEvent/storageFailed(_:)``.
    func didFailStorage(of device: PushDevice, _ error: PushError)
    /// The client's storage works again.
    func didRecoverStorage(of device: PushDevice)
    /// Calls were dropped, as the delegate did not return in time; how many. Up to 1,000 events and 16 MiB of their content wait for the delegates.
    /// The properties of ``PushDevice`` have the present state.
    func didMissEvents(_ count: Int, of device: PushDevice)
}

/// Each does nothing, so that a delegate has only what it needs.
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
