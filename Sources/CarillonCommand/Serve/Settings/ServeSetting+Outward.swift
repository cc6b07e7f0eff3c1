import CarillonAPNs
import CarillonCore
import CarillonServer

extension ServeSetting {
    /// Calls to other servers.
    static let outward: [ServeSetting] = [
        number(
            "shortest-ping-seconds", \.outward.shortestPingSeconds, connectionSeconds,
            "The shortest interval of a watch."),
        number(
            "callback-answer-seconds", \.outward.answerSeconds, 1...OutwardSettings.longestAnswerSeconds,
            """
            The time limit for the answer of a backend: a [watch](watch.md), a [key set](users.md#the-key-set) or an \
            [approval hook](approval-hook.md).
            """),
        number("max-calls", \.outward.pace.underWay, 1...1_000_000, "The maximum number of concurrent calls to backends."),
        number(
            "calls-per-second", \.outward.pace.perSecond, 1...1_000_000,
            "The maximum number of calls to backends that begin in one second."),
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
            "The certificate authorities that are trusted for those hosts, in place of the system's."
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
        number("max-pushes", \.gateways.underWay, 1...1_000_000, "The maximum number of concurrent pushes through Apple."),
    ]
}
