#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// The clocks of this device: the wall clock, which the user can set, and the uptime, which begins at each start of the device.
struct DeviceClock: Sendable {
    /// A reading of the uptime.
    struct Uptime: Equatable, Sendable {
        var milliseconds: Int64
        /// The id of the device's start from which the uptime counts.
        var boot: String
    }

    /// The wall clock, in milliseconds since 1970.
    var wall: @Sendable () -> Int64
    var uptime: @Sendable () -> Uptime

    static let system = DeviceClock {
        Date().milliseconds
    } uptime: {
        Uptime(milliseconds: monotonicMilliseconds, boot: boot)
    }

    /// The uptime includes the time in which the device sleeps.
    private static var monotonicMilliseconds: Int64 {
        #if canImport(Darwin)
            let clock = CLOCK_MONOTONIC_RAW
        #else
            let clock = CLOCK_BOOTTIME
        #endif
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// If the system has no id of its start, each process counts as a start.
    private static let boot = systemBoot ?? UUID().uuidString

    private static var systemBoot: String? {
        #if canImport(Darwin)
            var bytes = [UInt8](repeating: 0, count: 64)
            var size = bytes.count
            guard sysctlbyname("kern.bootsessionuuid", &bytes, &size, nil, 0) == 0, size > 1 else { return nil }
            return String(decoding: bytes.prefix(size - 1), as: UTF8.self)
        #else
            let name = FileManager.default.contents(atPath: "/proc/sys/kernel/random/boot_id") ?? Data()
            return name.isEmpty ? nil : String(decoding: name.filter { $0 > 0x20 }, as: UTF8.self)
        #endif
    }
}

/// The time of the server's clock when the server announced a maintenance, and the times of this device's clocks at that moment.
struct ServerTime: Equatable, Sendable {
    /// In milliseconds since 1970.
    var server: Int64
    var wall: Int64
    var uptime: DeviceClock.Uptime

    /// Returns the time by the server's clock. A change of the wall clock does not affect it until the device is started again.
    /// Then the difference between the two clocks counts.
    func now(wall: Int64, uptime: DeviceClock.Uptime) -> Int64 {
        guard uptime.boot == self.uptime.boot, uptime.milliseconds >= self.uptime.milliseconds else {
            return wall + (server - self.wall)
        }
        return server + (uptime.milliseconds - self.uptime.milliseconds)
    }
}

extension ServerTime {
    /// - Parameters:
    ///   - moments: Times by the server's clock, with the seconds until each of them.
    init?(_ moments: [(at: Int64?, inSeconds: Int?)], on clock: DeviceClock) {
        for case (let at?, let seconds?) in moments {
            self.init(server: at - Int64(seconds) * 1000, wall: clock.wall(), uptime: clock.uptime())
            return
        }
        return nil
    }
}
