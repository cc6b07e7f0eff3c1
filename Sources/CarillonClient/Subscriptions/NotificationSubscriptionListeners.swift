typealias NotificationSubscriptionListeners = EventListeners<NotificationSubscription, NotificationSubscriptionEvent>

extension NotificationSubscriptionListeners {
    convenience init() {
        self.init(
            calling: Calls(
                added: { delegate, subscription in
                    (delegate as? any NotificationSubscriptionDelegate)?.didAddDelegate(to: subscription)
                },
                removed: { delegate, subscription in
                    (delegate as? any NotificationSubscriptionDelegate)?.didRemoveDelegate(from: subscription)
                },
                happened: { delegate, event, subscription in
                    (delegate as? any NotificationSubscriptionDelegate)?.dispatch(event, of: subscription)
                }))
    }

    var delegates: [any NotificationSubscriptionDelegate] {
        livingDelegates.compactMap { $0 as? any NotificationSubscriptionDelegate }
    }
}

extension NotificationSubscriptionDelegate {
    fileprivate func dispatch(_ event: NotificationSubscriptionEvent, of subscription: NotificationSubscription) {
        switch event {
        case .missed(let count): didMissEvents(count, of: subscription)
        case .statusChanged(let status): didChangeStatus(of: subscription, to: status)
        case .subscribed: didSubscribe(subscription)
        case .unsubscribed: didUnsubscribe(subscription)
        case .triggered: didTrigger(subscription)
        case .subscriptionFailed(let error): didFailSubscription(subscription, error)
        case .unsubscriptionFailed(let error): didFailUnsubscription(subscription, error)
        case .propertyChanged(let property): didChangeProperty(property, of: subscription)
        case .modificationFailed(let property, let error): didFailModification(of: property, of: subscription, error)
        }
    }
}
