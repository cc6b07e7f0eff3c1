/// The definitions of AppKinetics' own services, with their ids and versions. Apps can offer and call them.
extension ServiceDefinition {
    /// Transfers one file.
    public static let transferFile = ServiceDefinition(
        service: "com.good.gdservice.transfer-file", version: "1.0.0.0", title: "Transfer File",
        description: "Hands over one file.",
        methods: ["transferFile": .init("Keep the file.", attachments: 1...1)])

    /// Requests that a file is edited. The edited file is returned by ``saveEditedFile``.
    public static let editFile = ServiceDefinition(
        service: "com.good.gdservice.edit-file", version: "1.0.0.0", title: "Edit File",
        description: "Opens a file for editing.",
        methods: [
            "editFile": .init(
                "Open the file; it comes back as a request of save-edited-file.",
                parameters: .object(["identificationData": .optional(.string)]), attachments: 1...1)
        ])

    /// Returns an edited file.
    public static let saveEditedFile = ServiceDefinition(
        service: "com.good.gdservice.save-edited-file", version: "1.0.0.1", title: "Save Edited File",
        description: "Takes an edited file back.",
        methods: [
            "saveEdit": .init(
                "Keep the edited file.", parameters: .object(["identificationData": .optional(.string)]), attachments: 1...1),
            "releaseEdit": .init(
                "The file was not changed.", parameters: .object(["identificationData": .optional(.string)])),
        ])

    /// Opens a draft of a mail.
    public static let sendEmail = ServiceDefinition(
        service: "com.good.gfeservice.send-email", version: "1.0.0.0", title: "Send Email",
        description: "Opens a draft of a mail.",
        methods: [
            "sendEmail": .init(
                "Open a draft.",
                parameters: .object([
                    "to": .optional(.array(.string)), "cc": .optional(.array(.string)), "bcc": .optional(.array(.string)),
                    "subject": .optional(.string), "body": .optional(.string),
                ]), attachments: 0...32)
        ])

    /// Opens an address in a browser.
    public static let openURL = ServiceDefinition(
        service: "com.good.gdservice.open-url.http", version: "1.0.0.0", title: "Open HTTP URL",
        description: "Opens an address in a browser.",
        methods: [
            "open": .init(
                "Open the address.",
                parameters: .object([
                    "url": .init(shape: .string, isOptional: false), "fullscreen": .optional(.bool),
                ]))
        ])

    /// Opens a draft of a calendar entry.
    public static let createCalendarItem = ServiceDefinition(
        service: "com.good.gdservice.create-calendar-item", version: "1.0.0.0", title: "Create Calendar Item",
        description: "Opens a draft of an entry in the calendar.",
        methods: ["createCalendarItem": .init("Open a draft.", parameters: .any, attachments: 0...32)])
}

extension ServiceDefinition.Method {
    fileprivate init(
        _ description: String, parameters: ServiceShape = .null, attachments: ClosedRange<Int> = 0...0
    ) {
        self.init(
            description: description, parameters: parameters, reply: .any, attachments: attachments,
            replyAttachments: 0...32, errors: [:])
    }
}

extension ServiceShape.Member {
    fileprivate static func optional(_ shape: ServiceShape) -> ServiceShape.Member { .init(shape: shape, isOptional: true) }
}
