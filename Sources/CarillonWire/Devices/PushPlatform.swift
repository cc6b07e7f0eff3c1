/// Whose push service reaches a device while its app sleeps.
package enum PushPlatform: String, CaseIterable, Sendable {
    case apple
}

/// Which of Apple's two services a token is of.
package enum PushEnvironment: String, CaseIterable, Sendable {
    case production
    /// For builds that are run from Xcode.
    case sandbox
    /// No service at all: the server remembers what it would have sent.
    case test
}
