// Code that an app and its notification service extension share: the decryption of messages
// (`Encryption/SubscriptionKeys.swift`), and a folder in which the app stores its keys and the extension records the messages
// that it showed (`Folder/SharedFolder.swift`).
