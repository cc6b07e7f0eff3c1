import CarillonAPNs
import CarillonCore
import CarillonServer

extension ServeSetting {
    /// The settings of calls to other servers.
    static let outward: [ServeSetting] = [
        number(
            "shortest-ping-seconds", \.outward.shortestPingSeconds, connectionSeconds,
            "The shortest interval of a watch."),
        number(
            "callback-answer-seconds", \.outward.answerSeconds, 1...OutwardSettings.longestAnswerSeconds,
            """
            The time for the answer of a back end: a [watch](watch.md), a [key set](users.md#the-key-set) or a \
            [approval hook](approval-hook.md).
            """),
        number("max-calls", \.outward.pace.underWay, 1...1_000_000, "The number of calls to back ends under way."),
        number(
            "calls-per-second", \.outward.pace.perSecond, 1...1_000_000,
            "The number of calls to back ends that are begun in a second."),
        place(
            "apns-production", standard: "`api.push.apple.com:443`",
            "Another host in place of Apple's push service: a relay, or [the simulator](apns-simulator.md)."
        ) { place, settings in
            settings.gateways.production = .custom(host: place.host, port: place.port)
        },
        place(
            "apns-sandbox", standard: "`api.sandbox.push.apple.com:443`",
            "The same for Apple's sandbox."
        ) { place, settings in
            settings.gateways.sandbox = .custom(host: place.host, port: place.port)
        },
        ServeSetting(
            "apns-ca", "a file of certificates in PEM", standard: "the system's",
            "The authorities that are trusted for those hosts, instead of the system's."
        ) { text, settings in
            settings.gateways.authorities = try TrustedFile(text, of: "\"apns-ca\"").pem
            return true
        },
        place(
            "apns-proxy",
            "An HTTP proxy to those hosts."
        ) { place, settings in
            settings.gateways.proxy = .http(host: place.host, port: place.port)
        },
        number("max-pushes", \.gateways.underWay, 1...1_000_000, "The number of pushes through Apple under way."),
    ]
}
