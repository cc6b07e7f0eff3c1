import CarillonCore
import CarillonServer
import Foundation

extension ServeSetting {
    /// Connections, sockets and their timers.
    static let connections: [ServeSetting] = [
        ServeSetting(
            "former-public-urls",
            "up to \(ServerSettings.mostFormerPublicURLs) URLs such as https://old.example.com, with commas between",
            isList: true,
            """
            Earlier values of `public-url`. Addresses that were given out under them [stay \
            valid](connecting.md#a-new-name). In the file it can be an array.
            """
        ) { text, settings in
            let urls = elements(of: text)
            guard urls.count <= ServerSettings.mostFormerPublicURLs else {
                throw CallAddress.Fault(
                    reason: "must have at most \(ServerSettings.mostFormerPublicURLs) URLs, not \(urls.count)")
            }
            guard !urls.contains("") else { throw CallAddress.Fault(reason: "must not have an empty element") }
            settings.formerPublicURLs = try urls.map { try ServerURL($0).text }
            return true
        },
        number(
            "max-sockets", \.maximumSockets, 1...10_000_000,
            "The number of sockets at a time. Further handshakes get 503."),
        number(
            "max-connections", \.maximumConnections, 1...10_000_000,
            """
            The number of other HTTP connections at a time. Further connections get 503. If the system does not \
            allow enough open files (`ulimit -n`, `LimitNOFILE`), a value that was set is refused at the start, \
            and a default is lowered with a warning.
            """),
        optionalNumber(
            "connections-per-address", \.connectionsPerAddress, 1...10_000_000, standard: "a quarter of `max-connections`",
            """
            The number of HTTP connections of [one address](guarantees.md), or of one /64 of IPv6. Further \
            connections get 429.
            """),
        optionalNumber(
            "sockets-per-address", \.socketsPerAddress, 1...10_000_000, standard: "a quarter of `max-sockets`",
            """
            The number of sockets of [one address](guarantees.md), or of one /64 of IPv6. Further handshakes get \
            429.
            """),
        rate("frame-rate", \.frameRate, "The rate limit for frames from one socket."),
        number(
            "answer-bytes", \.answerBytes, byteCounts,
            """
            The memory of [all answers](guarantees.md) that are not complete or not read yet, in bytes. Beyond it requests \
            get 503.
            """),
        number(
            "head-seconds", \.requests.headSeconds, connectionSeconds,
            "The time for the head of a request. Beyond it the request gets 408."),
        number(
            "body-seconds", \.requests.bodySeconds, connectionSeconds,
            "The time for the body of a request. Beyond it the request gets 408."),
        number(
            "answer-seconds", \.requests.answerSeconds, connectionSeconds,
            """
            The time until an answer begins, for example while the disk does not answer. Beyond it the request \
            gets 503.
            """),
        number(
            "idle-seconds", \.requests.idleSeconds, connectionSeconds,
            "How long an HTTP connection can wait for its next request."),
        number(
            "stall-seconds", \.stallSeconds, connectionSeconds,
            "The time in which a peer must read 4 KiB of its waiting data. Otherwise its connection ends."),
        number(
            "hello-seconds", \.helloTimeoutSeconds, connectionSeconds, "The time for the first frame of a socket."),
        number(
            "keep-alive-seconds", \.keepAliveSeconds, connectionSeconds,
            """
            The silence on a socket before a ping. With `keep-alive-answer-seconds` it is less than the 60 s after which \
            nginx closes a silent connection.
            """),
        number(
            "keep-alive-answer-seconds", \.keepAliveAnswerSeconds, connectionSeconds,
            "The time for the answer to a ping. Without an answer the socket ends."),
        text(
            "client-address-header", \.clientAddress.header, "the name of a field",
            """
            The field in which the proxy in front writes the address of the client, such as `X-Forwarded-For` \
            or `Forwarded` (RFC 7239). Its last element counts: see [the forms](connecting.md#behind-a-proxy). Use it only \
            with a proxy that writes the field itself.
            """),
        number("stop-seconds", \.stopSeconds, 1...3_600, "How long a stop can take."),
    ]

    /// The elements of a list with commas between, without the spaces around them.
    private static func elements(of list: String) -> [String] {
        if list.isEmpty { return [] }
        return list.split(separator: ",", omittingEmptySubsequences: false)
            .map { $0.trimmingCharacters(in: CharacterSet(charactersIn: " ")) }
    }
}
