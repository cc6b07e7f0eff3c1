import CarillonCore
import Logging

extension HomeDomain {
    /// The settings and sources of a process that opens its homes.
    struct Configuration: Sendable {
        /// The addresses of endpoints.
        var addresses: PublicURLs
        var scheduler: Scheduler
        var logger: Logger
        var watchSettings = WatchRegistrar.Settings()
        var workLimits = WorkPace.Limits()
        var rateLimits = RateLimits.Settings()
        var gatewaySettings = GatewaySettings()
        var userKeys = UserKeyFetcher.none
        var approvalHookCaller = ApprovalHookCaller.none
        var itemLimits = ItemEngine.Limits()
        var updateLimits = UpdateLimits()
        var turnLimits = RequestLimiter.Limits()
        var attachmentFiles: any AttachmentFiles = NoAttachmentFiles()
        var attachmentLimits = AttachmentLimits()
        var answerBytes = AnswerMemory.standardBytes
        /// The key that encrypts the key ring; nil without one.
        var wrapping: WrappingKey? = nil
        var time = TimeSource.system
        var ticks = TickSource.system
        /// The last sequence of the claimed epoch that the homes must not use; 0 if they can use the whole epoch.
        var positionsUsed: Int64 = 0

        /// The limits of each home.
        var ofHome: Settings {
            Settings(
                watches: watchSettings, work: workLimits, items: itemLimits, updates: updateLimits,
                attachments: attachmentLimits, outbox: .init(underWay: gatewaySettings.underWay))
        }
    }
}
