#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The fields of a notification.
struct NotificationFields: Sendable {
    var type: APNsPushType
    var alert = AlertFields()
    var plainAlert: String?
    var badge: Int?
    var sound: SoundFields?
    var threadID: String?
    var category: String?
    var isContentAvailable = false
    var isMutableContent = false
    var isContentChanged = false
    var targetContentID: String?
    var interruptionLevel: String?
    var relevanceScore: Double?
    var filterCriteria: String?
    var urlArguments: [String]?
    @Rare var activity: ActivityFields?
    var activityFault: String?
    /// A method for Live Activities that was called on another notification. Its value is not sent.
    var activityMethod: String?
    @Rare var accessory: AccessoryFields?
    var pushMagic: String?
    var custom: [CustomField] = []
    var raw: [UInt8]?

    var id: UUID?
    var expiration: APNsExpiration?
    var priority: APNsPriority?
    var topic: String?
    var bundleID: String?
    var collapseID: String?
    var isSizeChecked = true
    var isChecked = true

    /// A custom key. The value is nil if it could not be encoded.
    struct CustomField: Sendable {
        var key: String
        var value: JSONFragment?
        var fault: String?
    }

    struct AccessoryFields: Hashable, Sendable {
        var encryptedData: String
        var sessionIdentifier: String
        var keyID: String
        var messageIndex: String
    }

    init(type: APNsPushType) { self.type = type }
}
