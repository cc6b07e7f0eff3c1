/// The vendor whose push service reaches a device while its app is not running.
package enum PushPlatform: String, CaseIterable, Sendable {
    case apple
}

/// The environment of Apple's push service to which a token belongs.
package enum PushEnvironment: String, CaseIterable, Sendable {
    case production
    /// The environment for builds that are run from Xcode.
    case sandbox
    /// No push service: the server stores the pushes instead of sending them.
    case test
}
