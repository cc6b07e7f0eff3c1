/// What can be said to `serve`, but not as a flag: in the environment, or in the file of `--config`.
struct ServeSetting {
    let name: String
    let meaning: String

    private init(_ name: String, _ meaning: String) {
        self.name = name
        self.meaning = meaning
    }

    static let all = [
        ServeSetting("max-sockets", "sockets at a time (200000)"),
        ServeSetting("max-connections", "other HTTP connections at a time (20000)"),
        ServeSetting("connections-per-address", "HTTP connections of one address (a quarter of max-connections)"),
        ServeSetting("sockets-per-address", "sockets of one address (a quarter of max-sockets)"),
        ServeSetting("frame-rate", "frames that one socket sends: PER_SECOND:AT_ONCE, or off (2000:10000)"),
        ServeSetting("answer-bytes", "memory of all answers that clients have not read yet (67108864)"),
        ServeSetting("head-seconds", "time for the head of a request (10)"),
        ServeSetting("body-seconds", "time for its body (30)"),
        ServeSetting("answer-seconds", "how long an answer may take until it begins (30)"),
        ServeSetting("idle-seconds", "how long a connection may wait for its next request (75)"),
        ServeSetting("stall-seconds", "how long a peer may read less than 4 KiB of what waits for it (30)"),
        ServeSetting("hello-seconds", "time for a socket's first frame (5)"),
        ServeSetting("keep-alive-seconds", "silence on a socket before a ping (60)"),
        ServeSetting("keep-alive-answer-seconds", "time for the answer to it (10)"),
        ServeSetting("window-envelopes", "messages that a connection may hold unanswered (64)"),
        ServeSetting("window-bytes", "their bytes (262144)"),
        ServeSetting("inbox-envelopes", "messages that may wait for one device (10000)"),
        ServeSetting("inbox-bytes", "their bytes (33554432)"),
        ServeSetting("outcome-seconds", "how long outcomes are kept (604800)"),
        ServeSetting("outcomes-per-device", "outcomes that are kept of one device (10000)"),
        ServeSetting("idempotency-keys-per-device", "idempotency keys that are kept of one device (10000)"),
        ServeSetting("devices-per-app", "devices that an app may have (10000000)"),
        ServeSetting("anonymous-idle-seconds", "when an anonymous device that never connects is removed (2592000)"),
        ServeSetting("anonymous-unused-seconds", "the same of one that has no channel (86400)"),
        ServeSetting("inactive-seconds", "when a registered device that was not seen is removed (23328000)"),
        ServeSetting("suspended-seconds", "the same of one that was suspended for as long (2592000)"),
        ServeSetting("channel-rate", "messages to one channel: PER_SECOND:AT_ONCE, or off (1000:20000)"),
        ServeSetting("device-rate", "messages to one device (2000:40000)"),
        ServeSetting("app-rate", "messages to one app (100000:1000000)"),
        ServeSetting("item-rate", "updates of the items of one app (100000:1000000)"),
        ServeSetting("registration-rate", "channels that one device opens, and changes of its registration (20:2000)"),
        ServeSetting("address-rate", "devices and channels that come from one address (100:20000)"),
        ServeSetting("anonymous-per-address", "anonymous devices that come from one address (10000)"),
        ServeSetting("upload-rate", "uploads that one device, or the senders of one app, begin (50:2000)"),
        ServeSetting("service-request-rate", "requests of services that one device makes (2500:10000)"),
        ServeSetting("attachment-bytes", "the largest attachment (2147483648)"),
        ServeSetting("attachment-bytes-per-user", "what one user may have uploaded (5368709120)"),
        ServeSetting("attachment-bytes-per-app", "the same of all of an app (53687091200)"),
        ServeSetting("attachment-free-bytes", "what attachments leave free on the disk (268435456)"),
        ServeSetting("uploads-per-device", "uploads that a device may have begun and not finished (4)"),
        ServeSetting("unfinished-upload-seconds", "how long an unfinished upload is kept behind its last byte (86400)"),
        ServeSetting("max-transfers", "attachments that are brought and fetched at once (1024)"),
        ServeSetting("upload-resumption", "off: never tell 104, which some proxies take for the answer (on)"),
        ServeSetting("client-address-header", "the field in which a proxy writes whom it forwards for (none)"),
        ServeSetting("stop-seconds", "how long a stop may take (20)"),
        ServeSetting("shortest-ping-seconds", "the shortest interval of a watch (15)"),
        ServeSetting("answer-seconds", "time for a back end's answer (10, at most 15)"),
        ServeSetting("max-calls", "calls to back ends under way (64)"),
        ServeSetting("calls-per-second", "calls to back ends begun in a second (500)"),
        ServeSetting("apns-production", "another host for Apple's push service, HOST:PORT (api.push.apple.com:443)"),
        ServeSetting("apns-sandbox", "the same for its sandbox (api.sandbox.push.apple.com:443)"),
        ServeSetting("apns-ca", "a PEM file of the authorities that are believed for those hosts (the system's)"),
        ServeSetting("apns-proxy", "an HTTP proxy to them, HOST:PORT (none)"),
        ServeSetting("max-pushes", "pushes through Apple under way (4000)"),
    ]

    /// The settings that have a flag of their own name.
    static let flags = [
        "listen", "metrics-listen", "public-url", "data", "key-file", "dev", "anonymous-devices", "anonymous-app", "log",
        "allow-private-addresses",
        "outward-ca", "allowed-origins",
    ]

    static let names = flags + all.map(\.name)

    /// The name that the text was meant to be, by the fewest letters to change.
    static func nearest(to text: String) -> String {
        names.min { distance($0, text) < distance($1, text) } ?? ""
    }

    /// Letters to insert, remove or replace (Levenshtein).
    private static func distance(_ one: String, _ other: String) -> Int {
        let other = Array(other)
        var row = Array(0...other.count)
        for (index, letter) in one.enumerated() {
            var diagonal = row[0]
            row[0] = index + 1
            for column in other.indices {
                let replaced = diagonal + (letter == other[column] ? 0 : 1)
                diagonal = row[column + 1]
                row[column + 1] = min(replaced, row[column] + 1, row[column + 1] + 1)
            }
        }
        return row[other.count]
    }
}
