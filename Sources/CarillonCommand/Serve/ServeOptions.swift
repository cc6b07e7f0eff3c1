import ArgumentParser
import CarillonCore
import CarillonServer
import Configuration
import Foundation
import Logging

/// The settings of `serve`. Precedence: command-line flag, then environment variable, then configuration file.
struct ServeOptions {
    private let values: [String: String]
    let logger: Logger

    /// - Parameter environment: The unchanged variables of the process.
    init(
        flags: [String: String], file: String?, environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws {
        let environment = Environment.withoutLineEnds(environment)
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
        let isDevelopment = values["dev"].flatMap(ServeSetting.truth) == true
        let levelName = values["log"] ?? (isDevelopment ? "debug" : "info")
        guard let level = Logger.Level(rawValue: levelName) else { throw ServeSetting["log"].fault(levelName) }
        var logger = Logger(label: "carillon")
        logger.logLevel = level
        self.logger = logger
    }

    /// - Parameter openFiles: The number of files that the process can open.
    func settings(openFiles: Int = .max) throws -> ServerSettings {
        guard let data = values["data"] else {
            throw CommandFault(.validationFailure, "name the data directory with --data DIR (or CARILLON_DATA)")
        }
        var settings = ServerSettings(dataDirectory: data)
        try ServeSetting.read(values, into: &settings)
        try Self.checkPublicURL(settings)
        if isOn("anonymous-devices") || isOn("dev") { settings.anonymousApp = values["anonymous-app"] ?? "anonymous" }
        settings.outward.rules.allowsPrivate = isOn("allow-private-addresses") || isOn("dev")
        settings.attachments.transfersOfApp = max(1, settings.attachments.transfers / 2)
        try fit(&settings, to: openFiles)
        return settings
    }

    /// - Throws: ``CommandFault`` if the listen addresses do not determine a public URL and none was set.
    static func checkPublicURL(_ settings: ServerSettings) throws {
        if settings.publicURL != nil { return }
        if !settings.inheritedSockets.isEmpty {
            throw CommandFault(
                .validationFailure,
                "Sockets of a service manager need \"public-url\", because the server does not know their address.")
        }
        if settings.unixSocket != nil {
            throw CommandFault(
                .validationFailure, "\"listen\" with unix: needs \"public-url\", because endpoints cannot begin with a path."
            )
        }
    }

    private func isOn(_ name: String) -> Bool { values[name].flatMap(ServeSetting.truth) == true }

    /// Checks the number of connections at the start. Otherwise a lack of open files would be found only under load.
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
                "lowering the limit of connections, because the system allows few open files",
                metadata: ["files": "\(openFiles)", "max-sockets": "\(sockets)", "max-connections": "\(connections)"])
        }
    }
}
