import ArgumentParser
import CarillonAPNs

/// What all work on broadcast channels needs to know.
struct ChannelOptions: ParsableArguments {
    @OptionGroup(title: "Credentials") var credentials: APNsCredentialOptions
    @Option(
        name: [.customLong("topic"), .customLong("bundle-id")],
        help: ArgumentHelp("The app that owns the channels.", valueName: "bundle-id"))
    var topic: String
    @OptionGroup(title: "Service") var endpoint: APNsEndpointOptions
    @Option(
        help: ArgumentHelp(
            "The address for channel management, if it is not --endpoint: https://HOST:PORT.", valueName: "url"),
        transform: ServiceAddress.argument)
    var manage: ServiceAddress?
    @Flag(help: "Print one JSON object per line.")
    var json = false

    func validate() throws {
        guard credentials.areGiven else {
            throw ValidationError("Name the credentials: --key FILE --key-id ID --team-id ID, or --cert FILE.")
        }
        guard !endpoint.usesPort2197 else {
            throw ValidationError("--port-2197 is for pushes only; leave it out: Apple manages channels on another port.")
        }
    }

    var printer: Printer { Printer(isJSON: json) }

    /// Does the work, when the service can be reached.
    func perform(_ work: (APNsChannels) async throws -> Void) async throws {
        try await reportingFaults {
            try await reportingAPNsFaults {
                let address = manage ?? endpoint.management
                var configuration = try endpoint.configuration(try credentials.load(), to: address)
                configuration.bundleID = Topic(topic, for: .liveActivity).bundleID
                let client = try APNsClient(configuration)
                let channels = try client.channels()
                try await endpoint.connect(client, to: address)
                try await work(channels)
                await client.shutDown()
            }
        }
    }

    /// What was asked for; a refusal is thrown.
    func value<Value>(_ answer: APNsChannels.Answer<Value>) throws -> Value {
        switch answer.outcome {
        case .done(let value): return value
        case .rejected(let rejection):
            var fault = CommandFault(rejection)
            if rejection.reason == .badPath, !endpoint.isApple, manage == nil {
                fault.message +=
                    " If the service manages channels at another address than --endpoint, name it with --manage URL."
            }
            throw fault
        }
    }

    func show(_ channel: APNsChannels.Channel, event: String?) {
        let storage = ChannelStorage(channel.storage)
        var values: [String: OutputValue] = ["channel": .text(channel.id), "storage": .text(storage.rawValue)]
        values["event"] = event.map(OutputValue.text)
        let keeps = storage == .none ? "stores nothing" : "stores the latest"
        printer.print(
            values, otherwise: ([event, channel.id, keeps] as [String?]).compactMap(\.self).joined(separator: "  "))
    }
}
