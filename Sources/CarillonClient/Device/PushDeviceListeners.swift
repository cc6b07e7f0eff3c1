typealias PushDeviceListeners = EventListeners<PushDevice, PushDeviceEvent>

extension PushDeviceListeners {
    convenience init() {
        self.init(
            calling: Calls(
                added: { delegate, device in (delegate as? any PushDeviceDelegate)?.didAddDelegate(to: device) },
                removed: { delegate, device in (delegate as? any PushDeviceDelegate)?.didRemoveDelegate(from: device) },
                happened: { delegate, event, device in (delegate as? any PushDeviceDelegate)?.dispatch(event, of: device) }))
    }

    var delegates: [any PushDeviceDelegate] { livingDelegates.compactMap { $0 as? any PushDeviceDelegate } }
}

extension PushDeviceDelegate {
    fileprivate func dispatch(_ event: PushDeviceEvent, of device: PushDevice) {
        switch event {
        case .missed(let count): didMissEvents(count, of: device)
        case .statusChanged(let status): didChangeStatus(of: device, to: status)
        case .registered: didRegister(device)
        case .suspended(let reason): didSuspend(device, because: reason)
        case .resumed: didResume(device)
        case .registrationFailed(let error): didFailRegistration(of: device, error)
        // Only iterations receive these events.
        case .userTaken, .userRefused: break
        case .subscriptionsUpdated: didUpdateSubscriptions(of: device)
        case .badgeReset: didResetBadge(of: device)
        case .badgeResetFailed(let error): didFailBadgeReset(of: device, error)
        case .firingCrashed(let firing): handlerCrashed(for: firing, of: device)
        case .storageFailed(let error): didFailStorage(of: device, error)
        case .storageRecovered: didRecoverStorage(of: device)
        }
    }
}

/// The events of the device, from the beginning of each iteration on. An iteration ends when its task is cancelled or the client
/// is released.
///
/// Up to 100 events, and 16 MiB of their content, wait for a slow iteration. Beyond that the oldest event is dropped, and the
/// next event is ``PushDeviceEvent/missed(_:)``; the present state is in the properties of ``PushDevice``. When the device gets
/// another user or signs out, ``PushDeviceEvent/firingCrashed(_:)`` is dropped, and is not counted.
public struct PushDeviceEvents: AsyncSequence, Sendable {
    public typealias Element = PushDeviceEvent
    public typealias Failure = Never

    let listeners: PushDeviceListeners

    /// Begins an iteration.
    public func makeAsyncIterator() -> Iterator { Iterator(base: listeners.subscribe().makeAsyncIterator()) }

    /// The position of one reader in the events.
    public struct Iterator: AsyncIteratorProtocol {
        public typealias Element = PushDeviceEvent
        public typealias Failure = Never

        var base: AsyncStream<PushDeviceEvent>.Iterator

        /// Waits for the next event. Returns nil when the iteration ends.
        public mutating func next(isolation actor: isolated (any Actor)? = #isolation) async -> PushDeviceEvent? {
            await base.next(isolation: actor)
        }
    }
}
