/// What a store must know of how much it may keep.
package struct StoreSettings: Equatable, Sendable {
    package var inbox: InboxLimits
    package var callbacks: CallbackLimits
    /// Anonymous ones among them.
    package var devicesPerApp: Int

    package init(
        inbox: InboxLimits = InboxLimits(), callbacks: CallbackLimits = CallbackLimits(), devicesPerApp: Int = 10_000_000
    ) {
        self.inbox = inbox
        self.callbacks = callbacks
        self.devicesPerApp = devicesPerApp
    }
}
