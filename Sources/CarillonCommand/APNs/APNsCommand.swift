import ArgumentParser

struct APNsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apns", abstract: "Send through Apple's push service, and try it out.",
        discussion: """
            Begin with `carillon apns check`, which says whether your credentials and your network are fine. Without \
            Apple, `carillon apns simulate` is a push service of your own to send to.
            """,
        subcommands: [APNsSendCommand.self, APNsChannelsCommand.self, APNsCheckCommand.self, SimulateCommand.self])
}
