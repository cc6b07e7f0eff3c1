import CarillonCore
import CarillonWire
import Logging
import Metrics

/// Removes unused devices of a home, and reports the removals in the log and the metrics.
struct UnusedDeviceRemover: Sendable {
    private let domain: HomeDomain
    /// The numbers of seconds without activity after which a device is removed.
    private let limits: [(reason: UnusedDevice.Reason, seconds: Int)]
    private let counters = Dictionary(
        uniqueKeysWithValues: UnusedDevice.Reason.allCases.map { ($0, ServerMetric.devicesCollected.counter($0.rawValue)) })
    private let logger: Logger

    init(domain: HomeDomain, settings: ServerSettings, logger: Logger) {
        self.domain = domain
        self.logger = logger
        limits = UnusedDevice.Reason.allCases.map { reason in
            switch reason {
            case .inactive: (reason, settings.inactiveSeconds)
            case .suspended: (reason, settings.suspendedSeconds)
            case .anonymousIdle: (reason, settings.anonymousIdleSeconds)
            case .anonymousUnused: (reason, settings.anonymousUnusedSeconds)
            }
        }
    }

    /// Removes unused devices. Removes nothing while ``ServedTime/retention()`` does not permit irreversible decisions.
    func remove() async throws {
        for (reason, seconds) in limits {
            while !Task.isCancelled {
                guard let retention = domain.served.retention() else { return }
                let removed = try await domain.devices.removeUnused(
                    reason, in: domain.runtime.shards, afterSeconds: seconds, by: retention, atOnce: Self.devicesAtOnce)
                for device in removed { log(device, reason) }
                counters[reason]?.increment(by: removed.count)
                if removed.count < Self.devicesAtOnce { break }
            }
        }
    }

    private func log(_ device: UnusedDevice, _ reason: UnusedDevice.Reason) {
        logger.info(
            "device removed",
            metadata: [
                "app": "\(device.app)", "device": "\(device.id)", "reason": "\(reason.rawValue)",
                "last_seen": "\(Timestamp3339.text(device.seenAt.milliseconds))",
            ])
    }

    private static let devicesAtOnce = 100
}
