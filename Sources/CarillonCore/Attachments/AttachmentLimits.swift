package struct AttachmentLimits: Sendable {
    /// The maximum length of one file in bytes.
    package var fileBytes: Int64 = 2 << 30
    /// The maximum number of bytes of all uploads of a user, or of a device without a user.
    package var userBytes: Int64 = 5 << 30
    package var appBytes: Int64 = 50 << 30
    /// The number of bytes for which a smaller file counts, because rows and blocks have a cost, too.
    package var leastCharge: Int64 = 64 << 10
    /// The number of bytes that an incomplete upload reserves beyond the received bytes.
    package var aheadBytes: Int64 = 64 << 20
    /// The maximum number of bytes that the incomplete uploads of one user reserve together: a part of the app's quota, but at
    /// least one reservation.
    package var reservedOfUser: Int64 { max(appBytes / 20, aheadBytes) }
    /// The maximum number of unfinished uploads of a device.
    package var uploadsOfDevice = 4
    /// The maximum number of unfinished uploads of all senders of an app.
    package var uploadsOfSenders = 64
    /// The maximum numbers of concurrent uploads and downloads: in total, of an app, of a user's devices, of one device, and of
    /// all senders of an app.
    package var transfers = 1024
    package var transfersOfApp = 512
    package var transfersOfUser = 32
    package var transfersOfDevice = 8
    package var transfersOfSenders = 64
    package var readers = 32
    package var defaultLifetimeSeconds: Int64 = 7 * 86_400
    package var longestLifetimeSeconds: Int64 = 28 * 86_400
    /// How long an incomplete upload is kept after its last byte.
    package var unfinishedSeconds: Int64 = 86_400
    /// The number of bytes that must stay free on the disk.
    package var freeBytes: Int64 = 256 << 20
    /// The number of bytes after which an upload is synchronized to the disk and its offset is stored.
    package var syncBytes: Int64 = 16 << 20

    package init() {}
}
