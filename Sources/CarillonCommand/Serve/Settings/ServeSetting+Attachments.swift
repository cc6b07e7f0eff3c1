import CarillonCore
import CarillonServer

extension ServeSetting {
    /// The settings of attachments.
    static let attachments: [ServeSetting] = [
        longNumber(
            "attachment-bytes", \.attachments.fileBytes, byteCounts,
            "The size of the largest [attachment](attachments.md)."),
        longNumber(
            "attachment-bytes-per-user", \.attachments.userBytes, byteCounts,
            """
            The maximum bytes of all attachments of one user, or of one device without a user. A file counts as at least \
            65536 bytes.
            """),
        longNumber(
            "attachment-bytes-per-app", \.attachments.appBytes, byteCounts,
            "The maximum bytes of all attachments of one app. A file counts as at least 65536 bytes."),
        longNumber(
            "attachment-free-bytes", \.attachments.freeBytes, byteCounts,
            """
            The free space that attachments leave on the disk. With less free space uploads get 507, and nothing else is \
            affected.
            """),
        number(
            "uploads-per-device", \.attachments.uploadsOfDevice, counts,
            "The maximum number of unfinished uploads of a device."),
        longNumber(
            "unfinished-upload-seconds", \.attachments.unfinishedSeconds, keepingSeconds,
            "How long an unfinished upload is stored after its last byte."),
        number(
            "max-transfers", \.attachments.transfers, counts,
            """
            The number of attachments that are uploaded and fetched at once. Further transfers get 503. A device \
            has at most 8 of them, a user 32, the senders of an app 64, and one app half of all.
            """),
        onOff(
            "upload-resumption", \.announcesUploadResumption,
            "If this is off, uploaders never get the interim response 104, which some proxies (nginx) mistake for the final response."
        ),
    ]
}
