/// The limits that a store applies to its contents.
package struct StoreSettings: Equatable, Sendable {
    package var inbox: InboxLimits
    package var callbacks: CallbackLimits
    /// The limit includes anonymous devices.
    package var devicesPerApp: Int

    package init(
        inbox: InboxLimits = InboxLimits(), callbacks: CallbackLimits = CallbackLimits(), devicesPerApp: Int = 10_000_000
    ) {
        self.inbox = inbox
        self.callbacks = callbacks
        self.devicesPerApp = devicesPerApp
    }
}
