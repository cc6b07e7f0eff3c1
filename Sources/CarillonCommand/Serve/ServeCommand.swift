import ArgumentParser
import CarillonServer
import Configuration
import Logging
import ServiceLifecycle
import UnixSignals

struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Run a push server.",
        discussion: """
            Every option can also be set in the environment (CARILLON_PUBLIC_URL for --public-url) or in a JSON file \
            ({"public-url": "…"}). An option of the command line takes precedence over the environment, and the environment \
            over the file. Unknown names are refused.

            These settings can be set in the environment and in the file only:

            \(ServeSetting.helpLines)

            SIGTERM and Ctrl-C stop the server: it closes every socket with a goodbye, stores the accepted changes, and \
            exits with 0. SIGHUP is logged and otherwise ignored.
            """)

    @Option(help: ServeSetting.help("listen")) var listen: String?
    @Option(name: .customLong("metrics-listen"), help: ServeSetting.help("metrics-listen")) var metricsListen: String?
    @Option(name: .customLong("public-url"), help: ServeSetting.help("public-url")) var publicURL: String?
    @Option(help: ServeSetting.help("data")) var data: String?
    @Option(name: .customLong("key-file"), help: ServeSetting.help("key-file")) var keyFile: String?
    @Flag(help: ServeSetting.help("dev")) var dev = false
    @Flag(name: .customLong("anonymous-devices"), help: ServeSetting.help("anonymous-devices")) var anonymousDevices = false
    @Option(name: .customLong("anonymous-app"), help: ServeSetting.help("anonymous-app")) var anonymousApp: String?
    @Flag(name: .customLong("allow-private-addresses"), help: ServeSetting.help("allow-private-addresses"))
    var allowPrivateAddresses = false
    @Option(name: .customLong("outward-ca"), help: ServeSetting.help("outward-ca")) var outwardCA: String?
    @Option(name: .customLong("allowed-origins"), help: ServeSetting.help("allowed-origins")) var allowedOrigins: String?
    @Option(help: ServeSetting.help("log")) var log: String?
    @Option(help: ArgumentHelp("The number of homes, for tests of the server: 1 or 2.", visibility: .hidden)) var homes = 1
    @Option(help: "A JSON file with these options; or CARILLON_CONFIG in the environment.") var config: String?

    func run() async throws {
        HangupService.ignore()
        try await reportingFaults {
            let options = try ServeOptions(flags: flags, file: config)
            let logger = options.logger
            var settings = try options.settings(openFiles: OpenFiles.raiseLimit())
            guard (1...ServerSettings.mostHomes).contains(homes) else {
                throw CommandFault(.validationFailure, "\"homes\" must be 1 or 2, not \"\(homes)\".")
            }
            settings.homes = homes
            do throws(InheritedSocket.Fault) {
                settings.inheritedSockets = try InheritedSocket.all(environment: Environment.all)
            } catch {
                throw CommandFault(.validationFailure, error.sentence)
            }
            try ServeOptions.checkPublicURL(settings)
            settings.notifySocket = NotifySocket(environment: Environment.all)
            if settings.lacksPublicURL {
                logger.warning(
                    "endpoints begin with an address that no other machine can reach; set public-url to the address for senders and apps",
                    metadata: ["public-url": "\(settings.listenURL)"])
            }
            let listen = settings.listenPlaces.map(\.description).joined(separator: ", ")
            let metrics = settings.metrics == nil ? nil : MetricsRegistry.install()
            let server = CarillonServer(
                settings: settings, stores: Composition.stores, metrics: metrics, logger: logger
            ) { running in
                logger.info(
                    "serving",
                    metadata: ["listen": "\(listen)", "public-url": "\(running.addresses.base)"])
            }
            var group = ServiceGroupConfiguration(
                services: [
                    .init(service: HangupService(logger: logger)),
                    .init(service: server, successTerminationBehavior: .gracefullyShutdownGroup),
                ],
                gracefulShutdownSignals: [.sigterm, .sigint],
                logger: Logger(label: "carillon", factory: { _ in SwiftLogNoOpLogHandler() }))
            group.maximumGracefulShutdownDuration = .seconds(settings.stopSeconds + 5)
            do {
                try await ServiceGroup(configuration: group).run()
            } catch let fault as ListenFault {
                throw CommandFault(ExitStatus.unreachable, fault.sentence)
            }
        }
    }

    /// The options on the command line, by the names of their settings.
    var flags: [String: String] {
        var flags: [String: String] = [:]
        flags["listen"] = listen
        flags["metrics-listen"] = metricsListen
        flags["public-url"] = publicURL
        flags["data"] = data
        flags["key-file"] = keyFile
        flags["anonymous-app"] = anonymousApp
        flags["log"] = log
        if dev { flags["dev"] = "true" }
        flags["outward-ca"] = outwardCA
        flags["allowed-origins"] = allowedOrigins
        if allowPrivateAddresses { flags["allow-private-addresses"] = "true" }
        if anonymousDevices { flags["anonymous-devices"] = "true" }
        return flags
    }
}
