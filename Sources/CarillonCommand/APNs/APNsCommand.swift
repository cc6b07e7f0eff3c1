import ArgumentParser

struct APNsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apns",
        abstract: "Send pushes through Apple's push service, check credentials, and simulate the service.",
        discussion: """
            Start with `carillon apns check`, which checks your credentials and your network. To test without Apple, run a \
            simulated push service with `carillon apns simulate`.
            """,
        subcommands: [APNsSendCommand.self, APNsChannelsCommand.self, APNsCheckCommand.self, SimulateCommand.self])
}
