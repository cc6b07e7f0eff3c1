/// What a store must know of how much it may keep.
package struct StoreSettings: Equatable, Sendable {
    package var inbox: InboxLimits
    package var callbacks: CallbackLimits

    package init(inbox: InboxLimits = InboxLimits(), callbacks: CallbackLimits = CallbackLimits()) {
        self.inbox = inbox
        self.callbacks = callbacks
    }
}
