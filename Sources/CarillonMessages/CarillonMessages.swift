// What an app and its notification service extension need alike: how an encrypted message is opened, and the folder in which the
// app leaves its keys and the extension what it showed. `Encryption/SubscriptionKeys.swift` and `Folder/SharedFolder.swift`.
