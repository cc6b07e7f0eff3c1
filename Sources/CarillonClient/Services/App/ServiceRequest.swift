#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A request that a provider receives.
public struct ServiceRequest: Sendable {
    /// The id of the request, the same each time that it is handled.
    public let id: String
    public let consumer: ServiceApplication
    public let method: ServiceMethod
    public let parameters: ServiceValue
    /// The paths of the received files, which belong to the app.
    public let attachments: [String]
    public let foreground: ForegroundPreference
    /// The user of the consumer's device, if this provider is a server. The Carillon server reports the user; the consumer's seal
    /// does not cover it.
    public let user: String?
    /// The deadline of the reply, by the server's clock.
    public let deadline: Date
}
