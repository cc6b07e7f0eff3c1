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
            ({"public-url": "…"}); an option given here goes before the environment, and that before the file. What means \
            nothing there is refused.

            These are set in the environment and in the file only (with what holds otherwise):

            \(ServeSetting.all.map { "  \($0.name): \($0.meaning)" }.joined(separator: "\n"))

            SIGTERM and Ctrl-C stop the server: it says goodbye to every socket, writes down what was accepted, and \
            exits with 0.
            """)

    @Option(help: "The address to listen on. (default: 127.0.0.1:8080)") var listen: String?
    @Option(
        name: .customLong("metrics-listen"),
        help: "Where Prometheus reads /metrics: HOST:PORT, or a port of this machine. (default: nowhere)")
    var metricsListen: String?
    @Option(name: .customLong("public-url"), help: "What endpoints begin with: the address that senders and apps reach.")
    var publicURL: String?
    @Option(help: "The data directory; made when it is missing.") var data: String?
    @Option(
        name: .customLong("key-file"),
        help: """
            The file whose key wraps the server's keys; made when it is missing. Push credentials need it. Keep it apart from \
            the data and its backups.
            """)
    var keyFile: String?
    @Flag(help: "For development: anonymous devices and private addresses are allowed, and the log says more.") var dev =
        false
    @Flag(
        name: .customLong("anonymous-devices"),
        help: "Let in devices that never registered, as Firefox and UnifiedPush distributors do.")
    var anonymousDevices = false
    @Option(name: .customLong("anonymous-app"), help: "The app they belong to. (default: anonymous)")
    var anonymousApp: String?
    @Flag(
        name: .customLong("allow-private-addresses"),
        help: "Let back ends be pinged and called in private, local and reserved networks.")
    var allowPrivateAddresses = false
    @Option(
        name: .customLong("outward-ca"),
        help: "A PEM file of certificates that back ends may be signed with, beside the system's.")
    var outwardCA: String?
    @Option(
        name: .customLong("allowed-origins"),
        help: "Web pages that may send and receive from a browser: origins with commas between, or * for all.")
    var allowedOrigins: String?
    @Option(help: "trace, debug, info, notice, warning or error. (default: info)") var log: String?
    @Option(help: "A JSON file with these options; CARILLON_CONFIG in the environment does as well.") var config: String?

    func run() async throws {
        try await reportingFaults {
            let options = try ServeOptions(flags: flags, file: config)
            let logger = options.logger
            let settings = try options.settings(openFiles: OpenFiles.raiseLimit())
            if settings.lacksPublicURL {
                logger.warning(
                    "endpoints begin with an address that no other machine can reach; say with public-url what they do",
                    metadata: ["public-url": "\(settings.listenURL)"])
            }
            let metrics = settings.metrics == nil ? nil : MetricsRegistry.install()
            let server = CarillonServer(settings: settings, metrics: metrics, logger: logger) { running in
                logger.info(
                    "serving",
                    metadata: ["listen": "\(settings.listenAddress)", "public-url": "\(running.addresses.base)"])
            }
            var group = ServiceGroupConfiguration(
                services: [.init(service: server, successTerminationBehavior: .gracefullyShutdownGroup)],
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

    private var flags: [String: String] {
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
