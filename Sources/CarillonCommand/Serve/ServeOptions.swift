import ArgumentParser
import CarillonAPNs
import CarillonCore
import CarillonSQLite
import CarillonServer
import CarillonWire
import Configuration
import Logging

/// What `serve` was told, by flags, then by the environment, then by a file.
struct ServeOptions {
    private let values: [String: String]
    let logger: Logger

    /// - Parameter environment: Variables as the process has them.
    init(flags: [String: String], file: String?, environment: [String: String] = Environment.all) throws {
        var sources = [("flags", flags), ("environment", try ServeSources.environment(environment))]
        if let file = file ?? environment["CARILLON_CONFIG"] { sources.append(("file", try ServeSources.file(file))) }
        let providers = sources.map { name, values in
            InMemoryProvider(
                name: name,
                values: Dictionary(
                    uniqueKeysWithValues: values.map { name, value in
                        (AbsoluteConfigKey([name]), ConfigValue(.string(value), isSecret: false))
                    }))
        }
        let reader = ConfigReader(providers: providers)
        var values: [String: String] = [:]
        for name in ServeSetting.names { values[name] = reader.string(forKey: ConfigKey([name])) }
        self.values = values
        guard let level = Logger.Level(rawValue: values["log"] ?? (values["dev"] == "true" ? "debug" : "info")) else {
            throw CommandFault(.validationFailure, "--log must be trace, debug, info, notice, warning or error")
        }
        var logger = Logger(label: "carillon")
        logger.logLevel = level
        self.logger = logger
    }

    /// - Parameter openFiles: How many the process may have.
    func settings(openFiles: Int = .max) throws -> ServerSettings {
        guard let data = values["data"] else {
            throw CommandFault(.validationFailure, "say with --data DIR (or CARILLON_DATA) where to keep everything")
        }
        let (host, port) = try Self.address(values["listen"] ?? "127.0.0.1:8080", of: "--listen")
        var settings = ServerSettings(host: host, port: port, dataDirectory: data)
        if let text = values["metrics-listen"] {
            // A port alone is one of this machine.
            settings.metrics = try Self.address(Int(text) == nil ? text : "127.0.0.1:\(text)", of: "--metrics-listen")
        }
        if let url = values["public-url"] {
            guard url.hasPrefix("http://") || url.hasPrefix("https://") else {
                throw CommandFault(.validationFailure, "--public-url must begin with http:// or https://")
            }
            settings.publicURL = url
        }
        if try flag("anonymous-devices") || flag("dev") {
            settings.anonymousApp = try AppID.checked(values["anonymous-app"] ?? "anonymous").text
        }
        try number("max-sockets", &settings.maximumSockets)
        try number("max-connections", &settings.maximumConnections)
        try number("connections-per-address", &settings.connectionsPerAddress)
        try number("sockets-per-address", &settings.socketsPerAddress)
        try number("answer-bytes", &settings.answerBytes)
        try rate("frame-rate", &settings.frameRate)
        try number("hello-seconds", &settings.helloTimeoutSeconds)
        try number("keep-alive-seconds", &settings.keepAliveSeconds)
        try number("keep-alive-answer-seconds", &settings.keepAliveAnswerSeconds)
        try number("window-envelopes", &settings.window.envelopes)
        try number("window-bytes", &settings.window.bytes)
        try number("inbox-envelopes", &settings.store.inbox.envelopes)
        try number("inbox-bytes", &settings.store.inbox.bytes)
        var retention = Int(settings.store.inbox.outcomeRetentionSeconds)
        try number("outcome-seconds", &retention)
        settings.store.inbox.outcomeRetentionSeconds = Int64(retention)
        try number("stop-seconds", &settings.stopSeconds)
        try number("stall-seconds", &settings.stallSeconds)
        try number("outcomes-per-device", &settings.store.inbox.outcomes)
        try number("idempotency-keys-per-device", &settings.store.inbox.idempotencyKeys)
        try number("devices-per-app", &settings.store.devicesPerApp)
        try number("anonymous-idle-seconds", &settings.anonymousIdleSeconds)
        try number("anonymous-unused-seconds", &settings.anonymousUnusedSeconds)
        try number("inactive-seconds", &settings.inactiveSeconds)
        try number("suspended-seconds", &settings.suspendedSeconds)
        settings.clientAddress.header = values["client-address-header"]
        try setAllowances(&settings.allowances)
        try number("head-seconds", &settings.requests.headSeconds)
        try number("body-seconds", &settings.requests.bodySeconds)
        try number("answer-seconds", &settings.requests.answerSeconds)
        try number("idle-seconds", &settings.requests.idleSeconds)
        settings.allowedOrigins = try origins()
        try setOutward(&settings.outward)
        try setGateways(&settings.gateways)
        try setAttachments(&settings)
        settings.keyFile = values["key-file"]
        try fit(&settings, to: openFiles)
        return settings
    }

    private func setAttachments(_ settings: inout ServerSettings) throws {
        func bytes(_ name: String, _ setting: inout Int64) throws {
            var value = Int(setting)
            try number(name, &value)
            setting = Int64(value)
        }
        try bytes("attachment-bytes", &settings.attachments.fileBytes)
        try bytes("attachment-bytes-per-user", &settings.attachments.userBytes)
        try bytes("attachment-bytes-per-app", &settings.attachments.appBytes)
        try bytes("attachment-free-bytes", &settings.attachments.freeBytes)
        try bytes("unfinished-upload-seconds", &settings.attachments.unfinishedSeconds)
        try number("uploads-per-device", &settings.attachments.uploadsOfDevice)
        try number("max-transfers", &settings.attachments.transfers)
        settings.attachments.transfersOfApp = max(1, settings.attachments.transfers / 2)
        switch values["upload-resumption"] {
        case nil, "on"?: break
        case "off"?: settings.tellsUploadResumption = false
        case .some(let text):
            throw CommandFault(.validationFailure, "upload-resumption is on or off, not \"\(text)\"")
        }
    }

    private func setAllowances(_ allowances: inout Allowances.Settings) throws {
        try rate("channel-rate", &allowances.channelMessages)
        try rate("device-rate", &allowances.deviceMessages)
        try rate("app-rate", &allowances.appMessages)
        try rate("item-rate", &allowances.appUpdates)
        try rate("registration-rate", &allowances.deviceRegistrations)
        try rate("upload-rate", &allowances.uploads)
        try rate("service-request-rate", &allowances.serviceRequests)
        try rate("address-rate", &allowances.addressRegistrations)
        try number("anonymous-per-address", &allowances.anonymousDevices)
    }

    /// `off`, or how many a second, and behind a colon how many at once; ten seconds' worth when that is left out.
    private func rate(_ name: String, _ setting: inout Rate?) throws {
        guard let text = values[name] else { return }
        guard text != "off" else { return setting = nil }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false).map { Int($0) ?? 0 }
        let bounds = 1...1_000_000_000
        guard (1...2).contains(parts.count), parts.allSatisfy(bounds.contains) else {
            throw CommandFault(
                .validationFailure, "\(name) must be PER_SECOND, PER_SECOND:AT_ONCE or off, not \"\(text)\"")
        }
        setting = Rate(perSecond: parts[0], burst: parts.count == 2 ? parts[1] : min(10 * parts[0], bounds.upperBound))
    }

    private func origins() throws -> AllowedOrigins {
        do {
            return try AllowedOrigins(listing: values["allowed-origins"] ?? "")
        } catch {
            throw CommandFault(
                .validationFailure,
                "allowed-origins lists origins such as https://app.example.com, with commas between, or *; not "
                    + "\"\(error.text.prefix(60))\"")
        }
    }

    /// More connections than the system allows files for would only be found out in the middle of the night.
    private func fit(_ settings: inout ServerSettings, to openFiles: Int) throws {
        let budget = OpenFileBudget(files: openFiles, calls: settings.outward.pace.underWay)
        let fit = budget.fit(
            sockets: .init(settings.maximumSockets, isAsked: values["max-sockets"] != nil),
            connections: .init(settings.maximumConnections, isAsked: values["max-connections"] != nil))
        switch fit {
        case .fits:
            break
        case .tooMany(let room):
            throw CommandFault(
                .validationFailure,
                "max-sockets \(settings.maximumSockets) and max-connections \(settings.maximumConnections) are more than "
                    + "the system lets this process open: \(openFiles) files, which leaves \(room) for both. Raise the "
                    + "limit (ulimit -n, or LimitNOFILE of systemd), or set lower numbers.")
        case .lowered(let sockets, let connections):
            settings.maximumSockets = sockets
            settings.maximumConnections = connections
            logger.warning(
                "fewer connections than by default, as the system allows few open files",
                metadata: ["files": "\(openFiles)", "max-sockets": "\(sockets)", "max-connections": "\(connections)"])
        }
    }

    private func setOutward(_ outward: inout OutwardSettings) throws {
        outward.rules.allowsPrivate = try flag("allow-private-addresses") || flag("dev")
        outward.authorityFile = values["outward-ca"]
        if let file = outward.authorityFile, !OutwardSettings.holdsCertificates(file) {
            throw CommandFault(ExitStatus.noInput, "the file \(file) of --outward-ca holds no certificates in PEM")
        }
        try number("shortest-ping-seconds", &outward.shortestPingSeconds)
        try number("answer-seconds", &outward.answerSeconds)
        try number("max-calls", &outward.pace.underWay)
        try number("calls-per-second", &outward.pace.perSecond)
        let answerSeconds = 1...OutwardSettings.longestAnswerSeconds
        guard answerSeconds.contains(outward.answerSeconds), outward.shortestPingSeconds <= 86_400 else {
            throw CommandFault(
                .validationFailure,
                "answer-seconds may be \(answerSeconds.upperBound) at most, shortest-ping-seconds 86400")
        }
    }

    private func setGateways(_ gateways: inout GatewaySettings) throws {
        if let text = values["apns-production"] {
            let (host, port) = try Self.address(text, of: "apns-production")
            gateways.production = .custom(host: host, port: port)
        }
        if let text = values["apns-sandbox"] {
            let (host, port) = try Self.address(text, of: "apns-sandbox")
            gateways.sandbox = .custom(host: host, port: port)
        }
        if let text = values["apns-proxy"] {
            let (host, port) = try Self.address(text, of: "apns-proxy")
            gateways.proxy = .http(host: host, port: port)
        }
        if let file = values["apns-ca"] {
            guard OutwardSettings.holdsCertificates(file), let text = try? InputFile.text(file)
            else {
                throw CommandFault(ExitStatus.noInput, "the file \(file) of apns-ca holds no certificates in PEM")
            }
            gateways.authorities = text
        }
        try number("max-pushes", &gateways.underWay)
    }

    private func flag(_ name: String) throws -> Bool {
        switch values[name] {
        case nil, "false", "0", "no": false
        case "true", "1", "yes": true
        case .some(let text): throw CommandFault(.validationFailure, "\(name) must be true or false, not \"\(text)\"")
        }
    }

    private func number(_ name: String, _ setting: inout Int?) throws {
        var value = setting ?? 0
        try number(name, &value)
        if value > 0 { setting = value }
    }

    private func number(_ name: String, _ setting: inout Int) throws {
        guard let text = values[name] else { return }
        guard let number = Int(text), number > 0 else {
            throw CommandFault(.validationFailure, "\(name) must be a whole number above 0, not \"\(text)\"")
        }
        setting = number
    }

    /// `host:port`, or `[v6]:port`.
    private static func address(_ text: String, of option: String) throws -> (host: String, port: Int) {
        guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]),
            (1...65_535).contains(port), colon != text.startIndex
        else {
            throw CommandFault(.validationFailure, "\(option) must be HOST:PORT, such as 127.0.0.1:8080, not \"\(text)\"")
        }
        var host = String(text[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        return (host, port)
    }
}
